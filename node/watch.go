package node

import (
	"context"
	"sync"
	"time"

	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/protocol"
)

// # Members that suspect each other
//
// Where an algorithm has members for users that come back as new lives (protocol.Recovery), and asks
// for an UnreliableDetector, each member watches each other one. A suspicion ends nothing: the session
// goes on, and what is sent waits for the other one as it does while a connection is broken. A session
// ends when one of the two lives does, or when more waits in it than may; then what waits is lost, and
// so is what is sent until the two have begun the next one. Of each end the processes at both ends hear
// Suspect and then Restore, so that they can make up for it.

// A watch is what a member knows of another one's being alive.
type watch struct {
	mu sync.Mutex // held until the loops are told, so that all hear of everything in one order
	lease.Watch
}

// A detector is the failure detector of a member: how it watches the others. A nil one, where members do not
// suspect each other, does nothing.
type detector struct {
	n       *Node
	members []*watch
}

func newDetector(n *Node) *detector {
	if !n.roles.watched() {
		return nil
	}
	d := &detector{n: n}
	for range n.roles.members {
		d.members = append(d.members, &watch{Watch: *lease.NewWatch(n.c.Patience, n.c.Boot())})
	}
	return d
}

func watched(i *protocol.Info) bool {
	return comeBack(i) && i.Detector == protocol.UnreliableDetector
}

// lifeNumber is an incarnation that says in its last bit whether it joins.
func lifeNumber(clock uint64, joins bool) uint64 {
	if clock &^= 1; joins {
		clock |= 1
	}
	return clock
}

func joins(incarnation uint64) bool { return incarnation&1 == 1 }

func began(incarnation uint64) string {
	return time.Unix(0, int64(incarnation)).UTC().Format(time.RFC3339Nano)
}

// heard notes that the other end of a session lives. began says that the session is new.
func (d *detector) heard(s *session, began bool) {
	if d == nil || !d.n.roles.isMember(s.id) {
		return
	}
	w := d.members[s.id]
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Hear(d.n.c.Boot()) || began {
		d.n.postUrgent(func(l *loop) { l.open(s, true) })
	}
}

// Suspect has the failure detector of this member suspect another one until it is heard of, as if
// it had been silent for too long; but the time-out does not grow when that turns out to be wrong.
// It does nothing where members do not suspect each other.
func (n *Node) Suspect(id protocol.ID) {
	d := n.detector
	if d == nil || !d.n.roles.isMember(id) || id == d.n.roles.self {
		return
	}
	w := d.members[id]
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Force() {
		d.n.postUrgent(func(l *loop) { l.suspected(id) })
	}
}

// run suspects the members that are silent for too long.
func (d *detector) run(ctx context.Context) {
	least, most := time.Millisecond, max(time.Millisecond, d.n.c.Patience.First/4)
	t := time.NewTimer(0)
	defer t.Stop()
	due := d.n.c.Boot()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		now, wait := d.n.c.Boot(), most
		away := now-due > most // this process was stopped, and so were its readers
		for id, w := range d.members {
			if id := protocol.ID(id); id == d.n.roles.self {
				continue
			}
			w.mu.Lock()
			if away {
				w.Restart(now)
			}
			if w.Look(now) {
				d.n.postUrgent(func(l *loop) { l.suspected(protocol.ID(id)) })
			}
			if !w.Suspects() {
				wait = min(wait, w.End()-now)
			}
			w.mu.Unlock()
		}
		wait = max(least, wait)
		due = now + wait
		t.Reset(wait)
	}
}
