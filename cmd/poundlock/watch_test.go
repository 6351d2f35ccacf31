package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/proctest"
)

// TestWatchOnATerminal: the status is redrawn in place, and ^C ends it with status 0.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := clitest.Command(append([]string{"status", "--watch", "100ms"}, s.flags...)...)
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
	const want = "0 locks, 0 held; loss budget 2: a server may be restarted"
	done := func() bool {
		text := shown.String()
		return strings.Count(text, "\x1b[H\x1b[2J") >= 3 && strings.Contains(text, want)
	}
	for end := time.Now().Add(patience); !done(); {
		if time.Now().After(end) {
			t.Fatalf("it is not redrawn, or never shows %q: %q", want, shown.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := terminal.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("^C: %v", err)
	}
	<-ended
}
