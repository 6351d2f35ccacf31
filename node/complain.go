package node

import (
	"errors"
	"sync"
	"time"
)

// What strangers can make this node log: so much at once, and then one every so
// often.
const (
	maxComplaints  = 20
	complaintEvery = time.Second
)

// complain warns of what a peer did wrong. One that goes on does not fill the
// disk: the next warning that is let through counts those that were not.
func (n *Node) complain(what string, args ...any) {
	missing, ok := n.complaint.take(time.Now())
	if !ok {
		return
	}
	if missing > 0 {
		args = append(args, "unlogged", missing)
	}
	n.c.Log.Warn(what, args...)
}

// maxLate is how many records may wait for a log that hangs.
const maxLate = 64

// A record waits to be logged.
type record struct {
	what string
	why  error
	args []any
}

// later logs the end of a session on another goroutine: a log that hangs must not
// keep other sessions from ending in time. What does not fit into its queue is
// counted and not kept.
func (n *Node) later(what string, why error, args ...any) {
	select {
	case n.late <- record{what, why, args}:
	default:
		n.unlogged.Add(1)
	}
}

// logLate logs what later queued until the node closes, and then, for a second at
// most, what is left.
func (n *Node) logLate() {
	for {
		select {
		case r := <-n.late:
			n.logRecord(r)
		case <-n.ctx.Done():
			for end := time.Now().Add(time.Second); len(n.late) > 0 && time.Now().Before(end); {
				n.logRecord(<-n.late)
			}
			return
		}
	}
}

func (n *Node) logRecord(r record) {
	if k := n.unlogged.Swap(0); k > 0 {
		n.c.Log.Warn("the log was too slow for ends of sessions", "unlogged", k)
	}
	if ordinary(r.why) {
		n.c.Log.Info(r.what, r.args...)
	} else {
		n.complain(r.what, r.args...)
	}
}

// ordinary reports whether sessions of processes that do nothing wrong end so.
func ordinary(why error) bool {
	for _, e := range []error{errBye, errLapsed, errNewer, errRestarted, errForgotten, ErrClosed} {
		if errors.Is(why, e) {
			return true
		}
	}
	return false
}

// A limiter is a bucket of maxComplaints tokens, one of which comes back each
// complaintEvery.
type limiter struct {
	mu      sync.Mutex
	used    int
	since   time.Time // when the last token came back
	refused int
}

// take takes a token if there is one, and says how many were refused before.
func (l *limiter) take(now time.Time) (refused int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if back := int(now.Sub(l.since) / complaintEvery); back >= l.used {
		l.used, l.since = 0, now
	} else {
		l.used -= back
		l.since = l.since.Add(time.Duration(back) * complaintEvery)
	}
	if l.used == maxComplaints {
		l.refused++
		return 0, false
	}
	l.used++
	refused, l.refused = l.refused, 0
	return refused, true
}
