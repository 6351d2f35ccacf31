package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/poundlock/poundlock/internal/proctest"
)

// TestWatchOnATerminal: the status is redrawn in place, and ^C ends it with status 0.
func TestWatchOnATerminal(t *testing.T) {
	s := newStage(t)
	c := command(append([]string{"status", "--watch", "100ms"}, s.flags...)...)
	terminal, err := pty.StartWithSize(c, &pty.Winsize{Rows: 40, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	defer c.Process.Kill()
	var shown proctest.Log
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(&shown, terminal)
	}()
	for end := time.Now().Add(patience); strings.Count(shown.String(), "\x1b[H\x1b[2J") < 3; {
		if time.Now().After(end) {
			t.Fatalf("it is not redrawn: %q", shown.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !strings.Contains(shown.String(), "0 locks, 0 held; loss budget 2: a server may be restarted") {
		t.Errorf("it shows %q", shown.String())
	}
	if _, err := terminal.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("^C: %v", err)
	}
	<-ended
}
