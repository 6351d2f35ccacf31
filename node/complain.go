package node

import (
	"errors"
	"time"
)

// What the strangers of one host can make this node log: so much at once, and then one every so
// often. More hosts than maxComplainers share what one may.
const (
	maxComplaints  = 20
	complaintEvery = time.Second
	maxComplainers = 256
	unloggedEvery  = 10 * time.Second // when a host that has become silent is told of
)

// complain warns of what a peer did wrong, whose host is who; "" where that is this process's own.
// One that goes on neither fills the disk nor hides what others do wrong: the next warning about it that
// is let through counts those that were not. It reports whether this one was let through.
func (n *Node) complain(who, what string, args ...any) bool {
	missing, ok := n.complaints.Take(who, time.Now())
	if !ok {
		n.counters.unlogged.Add(1)
		return false
	}
	if missing > 0 {
		args = append(args, "unlogged", missing)
	}
	n.c.Log.Warn(what, args...)
	return true
}

// tellUnlogged says what was not logged about hosts that have become silent.
func (n *Node) tellUnlogged(now time.Time) {
	n.complaints.Refused(now, func(who string, missing int) {
		n.c.Log.Warn("more of the same from one host was not logged", "host", who, "unlogged", missing)
	})
}

// maxLate is how many records may wait for a log that hangs.
const maxLate = 64

// A record waits to be logged.
type record struct {
	who  string
	what string
	why  error
	args []any
}

// later logs the end of a session on another goroutine: a log that hangs must not
// keep other sessions from ending in time. What does not fit into its queue is
// counted and not kept.
func (n *Node) later(who, what string, why error, args ...any) {
	select {
	case n.late <- record{who, what, why, args}:
	default:
		n.unlogged.Add(1)
	}
}

// logLate logs what later queued until the node closes, and then, for a second at
// most, what is left.
func (n *Node) logLate() {
	tell := time.NewTicker(unloggedEvery)
	defer tell.Stop()
	for {
		select {
		case r := <-n.late:
			n.logRecord(r)
		case now := <-tell.C:
			n.tellUnlogged(now)
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
		n.complain(r.who, r.what, r.args...)
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
