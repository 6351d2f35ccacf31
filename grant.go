package poundlock

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/poundlock/poundlock/node"
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
func (g *Grant) Tokens() []uint64 {
	tokens := make([]uint64, len(g.s.holds))
	for i, h := range g.s.holds {
		tokens[i] = h.token
	}
	return tokens
}

// Group is the group that the grant shares its locks with, "" where it is alone. That of RWMutex.RLock is Shared.
func (g *Grant) Group() string { return string(g.s.wants) }

// Token is the first of Tokens, which is all of them unless Client.Locks was given
// several names.
func (g *Grant) Token() uint64 { return g.s.holds[0].token }

// Context is cancelled with a cause that is ErrLost and names the lock, before any
// server can give that lock away; with cause context.Canceled by Unlock. What is
// done under the lock should use it; what is written should also carry a token,
// because this process may be stopped between a look at the context and the write.
func (g *Grant) Context() context.Context { return g.s.ctx }

// LeaseEnd is the instant until which the grant is held even if this process hears
// from no server any more, by this machine's clock. It moves as servers are heard
// from. It is zero when a lock was lost or the grant unlocked; where Config.MaxHold
// ended the grant, not before the locks are given up.
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
	section *section
	line    *line
	began   time.Time
	decided chan struct{} // closed by the first of Crit and Rem

	// Constant once decided.
	entered time.Time
	token   uint64
	request uint64 // the time of the request that was granted, 0 unknown

	// Guarded by Client.mu.
	// sessions are the numbers of those with the servers that support this hold. One
	// that has another session with this client since has forgotten it.
	sessions map[protocol.ID]uint64
	// past are the last ones of these with servers that supported this hold, and do no more; nil: all do.
	past    map[protocol.ID]uint64
	state   state
	granted bool     // the user was told, or is about to be
	left    bool     // the user has ended, or overstayed
	gaveUp  error    // why the process did, nil where it was told to
	lost    *failure // why the lock was lost, nil if not
}

func newHold(s *section, l *line) *hold {
	c := s.client
	h := &hold{client: c, section: s, line: l, began: time.Now(), decided: make(chan struct{})}
	c.mu.Lock()
	l.hold = h
	c.mu.Unlock()
	return h
}

// Wants implements node.Sharer.
func (h *hold) Wants() protocol.Groups { return h.section.wants }

// Wanted implements node.Sharer.
func (h *hold) Wanted() {}

// Label implements node.Labelled.
func (h *hold) Label() string { return h.section.label }

// Crit implements node.User.
func (h *hold) Crit(e node.Entry) {
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	h.state, h.token, h.request, h.entered = inside, e.Token, e.Request, time.Now()
	h.supported(e.Sessions)
	h.client.counters.held.Add(1)
	close(h.decided)
}

// Supported implements node.User.
func (h *hold) Supported(sessions map[protocol.ID]uint64) {
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	h.supported(sessions)
}

// supported notes who supports h now. Client.mu is held.
func (h *hold) supported(sessions map[protocol.ID]uint64) {
	for id, number := range h.sessions {
		if _, still := sessions[id]; !still {
			if h.past == nil {
				h.past = map[protocol.ID]uint64{}
			}
			h.past[id] = number
		}
	}
	h.sessions = sessions
}

// Ejected implements node.User. The turn is kept until Unlock: whoever is still
// inside must not meet the next local user there.
func (h *hold) Ejected() {
	why := h.departed()
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	h.lose(why)
	h.section.revoked = false // should it have been: now it is lost in truth
}

// lose ends the context of a user that is inside. why is nil where no more is known.
// Client.mu is held.
func (h *hold) lose(why error) {
	if h.state == inside && h.lost == nil {
		h.lost = &failure{ErrLost, describe([]string{h.line.name}), cmp.Or(why, errUnsupported)}
		h.noteLoss()
		h.section.lose(h.lost)
	}
}

// Rem implements node.User. A node that closes or fails says it unasked.
func (h *hold) Rem(why error) {
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	switch h.state {
	case trying:
		h.gaveUp = why
		close(h.decided)
	case inside:
		h.lose(why)
	}
	h.state = out
	h.end()
}

// end passes the turn once both the process and the user are out. A user that
// gives up is out only when it has called Cancel, which must not meet the next
// user's Try. Client.mu is held.
func (h *hold) end() {
	if h.state == out && h.left {
		h.client.passTurn(h.line)
	}
}

// enter returns nil when the decision was Crit, and else why it was not.
func (h *hold) enter() error {
	expired := h.expired()
	var why error
	if expired {
		why = h.departed()
	}
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	switch {
	case h.client.closed():
		return ErrClosed
	case h.state == inside && h.lost == nil && expired:
		h.lose(why)
		return h.lost
	case h.state == inside && h.lost != nil:
		return h.lost
	case h.state != out:
		return nil
	case h.lost != nil:
		return h.lost
	case h.gaveUp == protocol.TooFew:
		return &failure{kind: ErrNoQuorum, why: h.gaveUp}
	case h.gaveUp != nil:
		return h.gaveUp
	}
	return errors.New("somebody else holds or wants it")
}

// tooFew is err, with which the wait for h ended, or ErrNoQuorum where more time would
// have been of no use: servers that drain can be reached, and give nothing.
func (h *hold) tooFew(err error) error {
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	over := err == errPatience || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if !over || h.gaveUp != protocol.TooFew {
		return err
	}
	return &failure{kind: ErrNoQuorum, why: after(err, h.gaveUp)}
}

// leave ends what the user does with h, whatever its state, and reports whether the
// process is still to be told. Client.mu is held.
func (h *hold) leave() (inCrit bool) {
	if h.left {
		return false
	}
	h.left = true
	h.noteLeave()
	if inCrit = h.state == inside; inCrit {
		h.state = leaving
	}
	h.end()
	return inCrit
}

// expired reports whether the user cannot be inside any more: fewer servers may
// support it than keep the others from being a quorum. Its process need not have
// been told yet, for this machine may have been stopped until a moment ago.
func (h *hold) expired() bool {
	return len(h.leases(time.Now())) < h.line.shard.spare()+1
}

// departed says which of the servers that ever supported the user have ended their sessions
// since, and how: nil if none has.
func (h *hold) departed() error {
	g := h.line.shard
	live := map[protocol.ID]uint64{}
	for _, s := range g.node.Sessions() {
		live[s.Peer] = s.Number
	}
	past := map[protocol.ID]uint64{}
	h.client.mu.Lock()
	maps.Copy(past, h.past)
	maps.Copy(past, h.sessions)
	h.client.mu.Unlock()
	gone := map[node.Cause][]string{}
	for id, number := range past {
		if live[id] == number {
			continue
		}
		cause := g.node.Ended(id, number)
		gone[cause] = append(gone[cause], g.Servers[id].Name)
	}
	return departed(gone)
}

// leaseEnd: the user stays inside while n-m+1 servers support it, so that the
// lease that counts is the latest but n-m.
func (h *hold) leaseEnd() time.Time {
	c := h.client
	c.mu.Lock()
	held := h.state == inside && (h.lost == nil || h.section.revoked)
	c.mu.Unlock()
	if !held {
		return time.Time{}
	}
	leases := h.leases(time.Time{})
	last := h.line.shard.spare()
	if last >= len(leases) {
		return h.entered
	}
	return leases[last]
}

// leases are the ends after now of the leases at the servers that support the
// user, latest first.
func (h *hold) leases(now time.Time) []time.Time {
	var ends []time.Time
	sessions := h.line.shard.node.Sessions()
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
