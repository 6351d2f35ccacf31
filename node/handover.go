package node

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// ErrNoHandover says why a member cannot hand its table over, now or ever.
var ErrNoHandover = errors.New("node: the table cannot be handed over")

// A Frozen member stands still between two events, so that its table can be written
// and another process can go on with it: it has no connection, delivers nothing and
// suspects nobody. Its sessions have not ended. Either Thaw follows, or Close of the
// node once nothing is being written any more; no client notices that Close.
type Frozen struct {
	n      *Node
	at     time.Duration // by Boot
	ran    time.Duration // after the node's start, at the same moment
	resume chan struct{} // closed when the loops go on
	once   sync.Once
}

// Node is the member that stands still.
func (f *Frozen) Node() *Node { return f.n }

// Freeze stops a member that serves clients. Processes with users of their own have
// no table to hand over: what a user is inside of cannot move to another process.
func (n *Node) Freeze() (*Frozen, error) {
	n.mu.Lock()
	var why string
	switch {
	case n.sessions.isClosing():
		why = "the server is closing"
	case n.draining:
		why = "the server is draining"
	case n.frozen != nil:
		why = "it is being handed over already"
	case !n.roles.member() || n.roles.info.Users != protocol.Clients:
		why = n.roles.name(n.c.ID) + " has users of its own"
	}
	if why != "" {
		n.mu.Unlock()
		return nil, fmt.Errorf("%w: %s", ErrNoHandover, why)
	}
	f := &Frozen{n: n, resume: make(chan struct{})}
	n.frozen = f
	front := n.front
	n.front = nil
	n.mu.Unlock()
	n.sessions.freeze(true)
	if front != nil {
		front.close()
	}
	n.park(f)
	f.at, f.ran = n.c.Boot(), time.Since(n.started)
	return f, nil
}

// runFrozen starts the goroutines of a node that stands still from the beginning.
func (n *Node) runFrozen() *Frozen {
	f := &Frozen{n: n, resume: make(chan struct{}), at: n.c.Boot(), ran: time.Since(n.started)}
	n.frozen = f
	n.sessions.freeze(true)
	for _, l := range n.loops {
		l.inbox.post(event{op: opAsk, do: func(*loop) { <-f.resume }})
	}
	n.run()
	return f
}

// park stops all loops at a moment when none has anything to do. A loop that still
// works may end a session, of which those that stand must hear: they go on then.
func (n *Node) park(f *Frozen) {
	for {
		again := make(chan struct{})
		var parked sync.WaitGroup
		for _, l := range n.loops {
			parked.Add(1)
			if !l.inbox.post(event{op: opAsk, do: func(*loop) {
				parked.Done()
				select {
				case <-again:
				case <-f.resume:
				}
			}}) {
				parked.Done()
			}
		}
		parked.Wait()
		quiet := true
		for _, l := range n.loops {
			quiet = quiet && l.inbox.settled()
		}
		if quiet {
			return
		}
		close(again)
	}
}

// Thaw has the member go on as if nothing had been. Serve follows.
func (f *Frozen) Thaw() {
	n := f.n
	n.mu.Lock()
	n.frozen = nil
	n.mu.Unlock()
	n.sessions.freeze(false)
	f.release()
}

func (f *Frozen) release() { f.once.Do(func() { close(f.resume) }) }

// Leases are the shortest and the longest lease of a client, and the longest that one
// may get where there are no clients.
func (n *Node) Leases() (shortest, longest time.Duration) {
	for _, s := range n.sessions.list() {
		s.mu.Lock()
		if l := s.lease.Length; l > 0 {
			longest = max(longest, l)
			if shortest == 0 || l < shortest {
				shortest = l
			}
		}
		s.mu.Unlock()
	}
	if longest == 0 {
		return n.c.Lease, n.c.Lease
	}
	return min(shortest, n.c.Lease), longest
}

// Away is how many clients have a lease here and no connection: those that a freeze
// cost theirs, until they are back, and those that died.
func (n *Node) Away() (k int) {
	now := n.c.Boot()
	for _, s := range n.sessions.list() {
		if _, up := s.up(now); up && !n.roles.isMember(s.id) && s.connection() == nil {
			k++
		}
	}
	return k
}
