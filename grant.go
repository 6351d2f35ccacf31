package poundlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// A Grant is one critical section, under one lock or several. Copies are the same
// grant. The zero Grant is none, and its methods panic.
type Grant struct{ s *section }

// Names are the names of the locks, in canonical order: bytewise ascending.
func (g *Grant) Names() []string { return g.s.names() }

// Tokens are the fencing tokens, in the order of Names: each larger than that of
// every grant of the same name that ended before this one began, as long as every
// server's clock is within Config.ClockBound of real time. Tokens of different
// names say nothing about each other: a resource compares those of the one name
// that guards it.
//
// That is so between groups, and between grants that are alone. Within a group tokens are not ordered: grants of
// one client that share a hold have the same token, and a reader may have a smaller one than a reader before it.
// fence.Checker.CheckGroup knows that.
func (g *Grant) Tokens() []uint64 {
	tokens := make([]uint64, len(g.s.holds))
	for k := range g.s.holds {
		tokens[k] = g.s.holds[k].token
	}
	return tokens
}

// Group is the group that the grant shares its locks with, "" where it is alone: of several that were asked for the one that
// was had. That of RWMutex.RLock is Shared.
func (g *Grant) Group() string { return g.s.group() }

// Downgrade makes a grant that is alone one of a group, such as Shared: others of the group come in beside it, and
// nobody else does in between. Tokens, lease and context stay what they are. Those of the group who wait already come
// in now; who comes later waits behind others that wait, as with RWMutex. It does not wait for the servers.
//
// What was written before may be read by others from now on. A resource that compares tokens is told
// the group from now on: see fence.Checker.CheckGroup.
//
// A grant of the group already stays as it is. One of another group cannot change it, nor be alone again: the error
// says what to do instead. It is ErrLost if a lock was lost before, and ErrUnlocked after Unlock.
func (g *Grant) Downgrade(group string) error { return g.s.downgrade(protocol.Group(group)) }

// Token is the first of Tokens, which is all of them unless Client.Locks was given
// several names.
func (g *Grant) Token() uint64 { return g.s.holds[0].token }

// Context is cancelled with a cause that is ErrLost and names the lock, before any
// server can give that lock away; with cause context.Canceled by Unlock. What is
// done under the lock should use it; what is written should also carry a token,
// because this process may be stopped between a look at the context and the write. It is
// made by the first call: a grant whose context nobody wants has none, and takes less memory.
func (g *Grant) Context() context.Context { return g.s.context(false) }

// LeaseEnd is the instant until which the grant is held even if this process hears
// from no server any more, by this machine's clock. It moves as servers are heard
// from. It is zero when a lock was lost or the grant unlocked; where Config.MaxHold
// ended the grant, not before the locks are given up. Among peers whose algorithm has no leases it is always an hour from now.
func (g *Grant) LeaseEnd() time.Time { return g.s.leaseEnd() }

// LeaveBy is the instant by which the user must have unlocked a grant that
// Config.MaxHold or an operator has ended: the end of its grace. Another request of an
// operator may make it earlier. It is zero in all other cases.
func (g *Grant) LeaveBy() time.Time { return g.s.leaveBy() }

// Unlock leaves the critical section and gives all its locks up, the last one
// first. It returns ErrLost if one was lost before, and works whatever became of
// any context; it does not wait for the servers. What was done under the locks must
// be durable before. A second Unlock returns ErrUnlocked.
func (g *Grant) Unlock() error { return g.s.unlock() }

// A hold is what one section has of one lock: a place among those that wait, and then a share of a stay.
type hold struct {
	section *section
	entered time.Duration // after Client.began; constant once Lock has returned, as token
	token   uint64

	// Guarded by Client.mu.
	stay       *stay    // nil: it waits behind the one of its lock. Constant from then on
	next, prev *hold    // of those that wait there, or rest on stay: see holds
	granted    bool     // the user was told, or is about to be
	left       bool     // the user has ended, or overstayed
	lost       *failure // why the lock was lost, nil if not
}

// holds are a list of them, in the order in which they came. Each is in one list at most, and has its links itself.
type holds struct{ first *hold } // whose prev is the last one; next of that one is nil

func (l *holds) add(h *hold) {
	if h.next = nil; l.first == nil {
		l.first, h.prev = h, h
		return
	}
	last := l.first.prev
	last.next, h.prev, l.first.prev = h, last, h
}

// remove takes out one that is in the list.
func (l *holds) remove(h *hold) {
	if h == l.first {
		l.first = h.next
	} else {
		h.prev.next = h.next
	}
	if h.next != nil {
		h.next.prev = h.prev
	} else if l.first != nil {
		l.first.prev = h.prev
	}
	h.next, h.prev = nil, nil
}

func (l *holds) empty() bool { return l.first == nil }

// all yields them; its caller may remove the one that it has.
func (l *holds) all() iter.Seq[*hold] {
	return func(yield func(*hold) bool) {
		for h := l.first; h != nil; {
			next := h.next
			if !yield(h) {
				return
			}
			h = next
		}
	}
}

// enters: the user is inside. Client.mu is held.
func (h *hold) enters() {
	c := h.section.client
	h.entered, h.token = time.Since(c.began), h.stay.nextToken()
	h.section.pending.wants = h.stay.wants
	c.counters.held.Add(1)
}

// isInside reports whether the user is inside, lost or not. Client.mu is held.
func (h *hold) isInside() bool { return h.stay != nil && h.stay.state == inside && !h.left }

// lose ends the context of a user that is inside. why is nil where no more is known.
// Client.mu is held.
func (h *hold) lose(why error) {
	if h.isInside() && h.lost == nil {
		h.lost = &failure{ErrLost, locks(h.stay.name), cmp.Or(why, errUnsupported)}
		h.noteLoss()
		h.section.lose(h.lost)
	}
}

// behind is the stay that h waits behind. Client.mu is held.
func (h *hold) behind() *stay { return h.section.client.stays.Get(h.section.pending.name) }

// giveUp is for a wait that err has ended, and says why. Others who wait for the same go on with its Try; without any
// it is cancelled, and the process answers with Rem, or was in the critical section before it heard of this.
// leave follows.
func (h *hold) giveUp(err error) error {
	c := h.section.client
	c.mu.Lock()
	defer c.mu.Unlock()
	s := h.stay
	switch {
	case s == nil:
		if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrNoQuorum) {
			err = fmt.Errorf("%w: %w", err, h.behind().taken(h.section))
		}
		h.leave() // now: nobody must hand a Try over to it
		return err
	case s.state == trying && !s.handOver(h):
		if !s.shard().info.Cancels { // its process goes on: whoever comes next may be inside with its Try
			h.leave()
			break
		}
		decided := s.attempt.decided
		c.mu.Unlock()
		s.shard().node.Cancel(s.name)
		<-decided
		c.mu.Lock()
	}
	return s.tooFew(err)
}

// leave ends what the user does with h, whatever its state. Client.mu is held.
func (h *hold) leave() {
	if h.left {
		return
	}
	h.noteLeave()
	h.left = true
	s := h.stay
	if s == nil {
		before := h.behind()
		before.waiters.remove(h)
		before.admit(false)
		return
	}
	if s.holds.remove(h); !s.holds.empty() {
		return
	}
	switch {
	case s.state == idle:
		s.state = out
	case s.keeps(h):
		s.kept = time.AfterFunc(h.section.keep, s.expire)
		s.admit(false)
	default:
		s.exit()
	}
	s.end()
}

// leaseEnd is the end of the lease while h is held, and else zero.
func (h *hold) leaseEnd() time.Time {
	c := h.section.client
	c.mu.Lock()
	held := h.isInside() && (h.lost == nil || h.section.revoked)
	c.mu.Unlock()
	if !held {
		return time.Time{}
	}
	if end := h.stay.leaseEnd(); !end.IsZero() {
		return end
	}
	return c.began.Add(h.entered)
}
