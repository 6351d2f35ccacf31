package poundlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// A Grant is one critical section. Copies are the same grant.
type Grant struct{ h *hold }

// Token is the fencing token: larger than that of every grant of this lock that
// ended before this one began, as long as every server's clock is within
// Config.ClockBound of real time.
func (g *Grant) Token() uint64 { return g.h.token }

// Context is cancelled with cause ErrLost before any server can give the lock
// away, with cause context.Canceled by Unlock. What is done under the lock
// should use it; what is written should also carry Token, because this process
// may be stopped between a look at the context and the write.
func (g *Grant) Context() context.Context { return g.h.ctx }

// LeaseEnd is the instant until which the grant is held even if this process hears
// from no server any more, by this machine's clock. It moves as servers are heard
// from. It is zero when the lock was lost or unlocked.
func (g *Grant) LeaseEnd() time.Time { return g.h.leaseEnd() }

// Unlock leaves the critical section. It returns ErrLost if the lock was lost
// before, and works whatever became of any context; it does not wait for the
// servers. What was done under the lock must be durable before. A second Unlock
// returns an error.
func (g *Grant) Unlock() error { return g.h.unlock() }

// A state is where the user of a hold is.
type state uint8

const (
	trying  state = iota
	inside        // told Crit, has not left; lost or not
	leaving       // has left, Rem follows
	out
)

// A hold is one try and what follows. It is the user of its lock at the node,
// whose calls come one at a time and must not block.
type hold struct {
	client  *Client
	line    *line
	ctx     context.Context
	cancel  context.CancelCauseFunc
	decided chan struct{} // closed by the first of Crit and Rem

	// Constant once decided.
	entered time.Time
	token   uint64

	// Guarded by Client.mu.
	// sessions are the numbers of those with the servers that support this hold. One
	// that has another session with this client since has forgotten it.
	sessions map[protocol.ID]uint64
	state    state
	unlocked bool   // the user has ended: unlock was called
	reason   string // why the process gave up
	lost     error  // why the lock was lost, nil if not
}

func newHold(parent context.Context, c *Client, l *line) *hold {
	ctx, cancel := context.WithCancelCause(parent)
	h := &hold{client: c, line: l, ctx: ctx, cancel: cancel, decided: make(chan struct{})}
	c.mu.Lock()
	l.hold = h
	c.mu.Unlock()
	return h
}

// Crit implements node.User.
func (h *hold) Crit(e node.Entry) {
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	h.state, h.token, h.sessions, h.entered = inside, e.Token, e.Sessions, time.Now()
	close(h.decided)
}

// Supported implements node.User.
func (h *hold) Supported(sessions map[protocol.ID]uint64) {
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	h.sessions = sessions
}

// Ejected implements node.User. The turn is kept until Unlock: whoever is still
// inside must not meet the next local user there.
func (h *hold) Ejected() {
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	h.lose(ErrLost)
}

// lose ends the context of a user that is inside. Client.mu is held.
func (h *hold) lose(cause error) {
	if h.state == inside && h.lost == nil {
		h.lost = cause
		h.cancel(cause)
	}
}

// Rem implements node.User. A node that closes or fails says it unasked.
func (h *hold) Rem(reason string) {
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	switch h.state {
	case trying:
		h.reason = reason
		close(h.decided)
	case inside:
		h.lose(ErrLost)
	}
	h.state = out
	h.end()
}

// end passes the turn once both the process and the user are out. A user that
// gives up is out only when it has called Cancel, which must not meet the next
// user's Try. Client.mu is held.
func (h *hold) end() {
	if h.state == out && h.unlocked {
		h.client.passTurn(h.line)
	}
}

// enter returns nil when the decision was Crit, and else why it was not.
func (h *hold) enter() error {
	expired := h.expired()
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	switch {
	case h.client.closed():
		return ErrClosed
	case h.state == inside && h.lost == nil && expired:
		h.lose(ErrLost)
		return ErrLost
	case h.state != out:
		return nil
	case h.lost != nil:
		return h.lost
	case h.reason != "":
		return errors.New(h.reason)
	}
	return errors.New("somebody else holds or wants it")
}

// unlock ends what this call's user does with h, whatever its state.
func (h *hold) unlock() error {
	c := h.client
	expired := h.expired()
	c.mu.Lock()
	if h.unlocked {
		c.mu.Unlock()
		return fmt.Errorf("poundlock: lock %q is unlocked already", h.line.name)
	}
	h.unlocked = true
	if expired {
		h.lose(ErrLost)
	}
	lost, exit := h.lost, h.state == inside
	if exit {
		h.state = leaving
	}
	h.cancel(nil)
	h.end()
	c.mu.Unlock()
	if exit {
		h.line.group.node.Exit(h.line.name)
	}
	if lost != nil {
		return fmt.Errorf("%w: lock %q", lost, h.line.name)
	}
	return nil
}

// expired reports whether the user cannot be inside any more: fewer servers may
// support it than keep the others from being a quorum. Its process need not have
// been told yet, for this machine may have been stopped until a moment ago.
func (h *hold) expired() bool {
	return len(h.leases(time.Now())) < h.line.group.spare()+1
}

// leaseEnd: the user stays inside while n-m+1 servers support it, so that the
// lease that counts is the latest but n-m.
func (h *hold) leaseEnd() time.Time {
	c := h.client
	c.mu.Lock()
	held := h.state == inside && h.lost == nil
	c.mu.Unlock()
	if !held {
		return time.Time{}
	}
	leases := h.leases(time.Time{})
	last := h.line.group.spare()
	if last >= len(leases) {
		return h.entered
	}
	return leases[last]
}

// leases are the ends after now of the leases at the servers that support the
// user, latest first.
func (h *hold) leases(now time.Time) []time.Time {
	var ends []time.Time
	sessions := h.line.group.node.Sessions()
	h.client.mu.Lock()
	supports := h.sessions
	h.client.mu.Unlock()
	for _, s := range sessions {
		if k, ok := supports[s.Peer]; ok && k == s.Number && s.LeaseEnd.After(now) {
			ends = append(ends, s.LeaseEnd)
		}
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	return ends
}
