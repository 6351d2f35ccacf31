package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/internal/limit"
)

// What a log that hangs cannot take is bounded, and counted once it goes on.
func TestLateRecordsAreBounded(t *testing.T) {
	var log bytes.Buffer
	l := newLogbook(slog.New(slog.NewTextHandler(&log, nil)))
	l.rate = limit.Rate[string]{Burst: 1, Every: time.Second, Most: 1}
	for range maxLate + 36 {
		l.later("", "session ended", errLapsed)
	}
	l.write(<-l.late)
	l.write(<-l.late)
	text := log.String()
	if strings.Count(text, "unlogged=36") != 1 || strings.Count(text, "session ended") != 2 || len(l.late) != maxLate-2 {
		t.Errorf("%d records wait after:\n%s", len(l.late), text)
	}
}

// One host's noise hides no warning about another, and how much of it was left out is said.
func TestComplaintsByHost(t *testing.T) {
	var log bytes.Buffer
	n, err := newNode(Config{
		Secret: 1, Peers: []Peer{{Name: "s1", Addr: "127.0.0.1:1"}}, Hosts: map[Kind]Host{Mutex: HostOf(sigma.Algorithm)},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.cancel()
	for range 1000 {
		n.book.warn("10.0.0.7", "noise")
	}
	n.book.warn("10.0.0.8", "a warning")
	n.book.tellMissing(time.Now().Add(time.Minute))
	text := log.String()
	if strings.Count(text, "msg=noise") > maxWarnings+1 || !strings.Contains(text, "a warning") || n.book.missing.Load() < 900 ||
		!strings.Contains(text, "host=10.0.0.7 unlogged=9") {
		t.Errorf("the log:\n%s", text)
	}
}
