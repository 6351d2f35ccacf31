package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What a log that hangs cannot take is bounded, and counted once it goes on.
func TestLateRecordsAreBounded(t *testing.T) {
	var log bytes.Buffer
	n := &Node{c: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, late: make(chan record, maxLate)}
	for range maxLate + 36 {
		n.later("session ended", errLapsed)
	}
	n.logRecord(<-n.late)
	n.logRecord(<-n.late)
	text := log.String()
	if strings.Count(text, "unlogged=36") != 1 || strings.Count(text, "session ended") != 2 || len(n.late) != maxLate-2 {
		t.Errorf("%d records wait after:\n%s", len(n.late), text)
	}
}

// What the limiter refuses is counted, and after a while it is full again.
func TestLimiter(t *testing.T) {
	var l limiter
	now := time.Now()
	take := func(k int) (refused, ok int) {
		for range k {
			r, yes := l.take(now)
			refused += r
			if yes {
				ok++
			}
		}
		return refused, ok
	}
	for _, x := range []struct {
		after             time.Duration
		k, refused, taken int
	}{
		{0, 3 * maxComplaints, 0, maxComplaints},
		{complaintEvery - 1, 1, 0, 0},
		{1, 2, 2*maxComplaints + 1, 1},
		{3*complaintEvery + complaintEvery/2, 5, 1, 3},
		{complaintEvery / 2, 5, 2, 1},
		{time.Hour, maxComplaints, 4, maxComplaints},
	} {
		now = now.Add(x.after)
		if refused, taken := take(x.k); refused != x.refused || taken != x.taken {
			t.Errorf("after %v: %d taken, %d counted, want %d and %d", x.after, taken, refused, x.taken, x.refused)
		}
	}
}
