package node

import (
	"cmp"
	"io"

	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/wrap/reliable"
)

// EndLapsed ends the session with a peer as the watcher does when it has seen the
// lease lapse.
func (n *Node) EndLapsed(peer protocol.ID) { n.sessions.end(n.sessions.lookup(peer), errLapsed, nil) }

// EndSession ends the session with a peer as if that had closed it.
func (n *Node) EndSession(peer protocol.ID) { n.sessions.end(n.sessions.lookup(peer), errBye, nil) }

// Room is how many messages, and bytes, may wait for a peer more than there are.
func (n *Node) Room(peer protocol.ID) (items, size int) {
	s := n.sessions.lookup(peer)
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.window
	return cmp.Or(w.MaxItems, reliable.MaxItems) - w.Unacked(), w.MaxBytes - w.UnackedBytes()
}

// StartAs is Start with another incarnation.
func StartAs(c Config, incarnation uint64) (*Node, error) {
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	n.incarnation = incarnation
	n.run()
	return n, n.Serve(c.Listener)
}

// Damages are what a snapshot could leave out, by name: each is done to a restored
// node before it runs.
var Damages = map[string]func(n *Node){
	"sessions": func(n *Node) { clear(n.sessions.byPeer) },
	"windows": func(n *Node) {
		for _, s := range n.sessions.byPeer {
			s.window = reliable.Window{}
		}
	},
	"leases": func(n *Node) {
		for _, s := range n.sessions.byPeer {
			s.lease = lease.Lease{}
		}
	},
	"incarnation": func(n *Node) { n.incarnation++ },
	"processes": func(n *Node) {
		for _, s := range n.loops {
			for _, i := range s.instances.All() {
				s.remove(i)
			}
		}
	},
	"timers": func(n *Node) {
		for _, s := range n.loops {
			for _, i := range s.instances.All() {
				for i.timers != nil {
					s.timers.stop(i.timers)
				}
			}
		}
	},
	"who uses a lock": func(n *Node) {
		for _, s := range n.loops {
			for _, p := range s.sessions {
				*s.limits.of(p) = uses{}
			}
		}
	},
	"sessions of the loops": func(n *Node) {
		for _, s := range n.loops {
			clear(s.sessions)
		}
	},
	"who shares a lock": func(n *Node) {
		for _, s := range n.loops {
			clear(s.audit.shared)
		}
	},
	"failed locks": func(n *Node) {
		for _, s := range n.loops {
			clear(s.users.failed)
		}
	},
}

// RestoreDamaged is Restore with something left out.
func RestoreDamaged(c Config, in io.Reader, damage func(n *Node)) (*Frozen, error) {
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	l := &loader{n: n, in: in}
	if err := l.load(); err != nil {
		n.cancel()
		return nil, err
	}
	damage(n)
	return n.runFrozen(), nil
}

// Principal is whom a certificate is for.
var Principal = principal

// InLine is how many sessions wait for their turn at a loop.
func (n *Node) InLine() (k int) {
	for _, l := range n.loops {
		l.inbox.mu.Lock()
		k += len(l.inbox.line)
		l.inbox.mu.Unlock()
	}
	return k
}

// Failed is how many locks have failed.
func (n *Node) Failed() (k int) {
	for _, l := range n.loops {
		l.users.mu.Lock()
		k += len(l.users.failed)
		l.users.mu.Unlock()
	}
	return k
}

// Instances is how many processes of locks there are.
func (n *Node) Instances() int64 { return n.instances.Load() }

// Rests ends the sessions as if nothing had been wanted for Config.Idle.
func (n *Node) Rests() {
	n.demand.mu.Lock()
	n.demand.since = n.demand.since.Add(-n.demand.after)
	n.demand.mu.Unlock()
	n.demand.rest()
}
