package poundlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// A wait is one call's patience: it ends with ctx, with the client, with the
// bound of TryLock, when no quorum could be reached for Config.QuorumWait, or when
// the section has lost a lock that it has already.
type wait struct {
	client   *Client
	shards   []*shard // of the locks that would do: a quorum of one is enough
	ctx      context.Context
	section  *section
	patience <-chan time.Time // nil: none
	since    time.Time        // when fewer servers than a quorum were first seen alive; zero: they are enough
}

var errPatience = errors.New("it was not decided in time")

// until returns nil once done is closed, or why the wait ended before.
func (w *wait) until(done <-chan struct{}) error {
	c := w.client
	bound := c.config.QuorumWait
	for {
		select {
		case <-done: // also where the wait has ended
			return nil
		default:
		}
		switch {
		case w.anyUp():
			w.since = time.Time{}
		case w.since.IsZero():
			w.since = time.Now()
		case time.Since(w.since) >= bound:
			return w.noQuorum(fmt.Errorf("for %v", bound))
		}
		select {
		case <-done:
			return nil
		case <-c.closing:
			return ErrClosed
		case <-w.ctx.Done():
			return w.over(ended(w.ctx))
		case <-w.section.pending.loss:
			if c.closed() {
				return ErrClosed
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			return w.section.pending.lost
		case <-w.patience:
			return w.over(errPatience)
		case <-c.pulse.next(max(bound/10, time.Millisecond)):
		}
	}
}

// A pulse wakes all who wait, now and then, with one timer. It has none while nobody waits.
type pulse struct {
	mu   sync.Mutex
	beat chan struct{} // nil: there is none to come
}

// next is closed within a time, or before that.
func (p *pulse) next(within time.Duration) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.beat == nil {
		beat := make(chan struct{})
		p.beat = beat
		time.AfterFunc(within, func() {
			p.mu.Lock()
			p.beat = nil
			p.mu.Unlock()
			close(beat)
		})
	}
	return p.beat
}

// anyUp reports whether one of the shards has a quorum that can be reached.
func (w *wait) anyUp() bool { return slices.ContainsFunc(w.shards, (*shard).up) }

// connected waits for a quorum of the one shard, unless the section may join without: one attempt must not
// fail because this client has only just begun to dial these servers.
func (w *wait) connected(name string) error {
	if w.anyUp() || w.client.joins(w.section, name) {
		return nil
	}
	g := w.shards[0]
	ctx, cancel := context.WithCancel(w.ctx)
	reached := make(chan struct{})
	var dialing sync.WaitGroup
	dialing.Go(func() {
		if g.node.WaitAlive(ctx, g.enough()) == nil {
			close(reached)
		}
	})
	err := w.until(reached)
	cancel()
	dialing.Wait()
	return err
}

// over is the error of a wait whose time is up.
func (w *wait) over(err error) error {
	for _, g := range w.shards {
		if !g.up() && (!w.since.IsZero() || !g.rests()) { // it has waited without a quorum, whatever is known of why
			return w.noQuorum(err)
		}
	}
	return err
}

// noQuorum adds what each server said to err.
func (w *wait) noQuorum(err error) error {
	for _, g := range w.shards {
		if why := g.failing(); why != nil {
			err = after(err, why)
		}
	}
	return &failure{kind: w.shards[0].lack, why: err}
}

// takeTurn adds a hold to the section and waits, first come first served, until it rests on a stay: one of its own, where nobody is
// before it, one that it shares, or one of its own that is decided. With once it waits only for a turn that is about to end, because its
// user has unlocked.
func (c *Client) takeTurn(w *wait, name string, once bool) (*hold, error) {
	if w.ctx.Err() != nil {
		return nil, w.over(ended(w.ctx))
	}
	c.mu.Lock()
	s, x := c.stays.Get(name), w.section
	if s != nil && s.isKept() { // where this machine has slept there may be nothing left to join
		c.mu.Unlock()
		expired := s.expired()
		c.mu.Lock()
		if s.closed = s.closed || expired; expired {
			s.exit()
		}
		s = c.stays.Get(name)
	}
	if c.closed() {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	if s != nil && !s.joins(x) {
		s.exit() // if it is only kept
	}
	if once && s != nil && !s.ending() && !s.joins(x) {
		defer c.mu.Unlock()
		return nil, s.taken(x)
	}
	x.holds = append(x.holds, hold{section: x})
	h, p := &x.holds[len(x.holds)-1], x.pending
	p.name, p.once, p.turn = name, once, nil
	if s == nil {
		newStay(name, h)
	} else {
		s.waiters.add(h)
		s.admit(false)
	}
	if h.stay != nil {
		c.mu.Unlock()
		return h, nil
	}
	turn := make(chan struct{})
	p.turn = turn // until it rests
	c.mu.Unlock()
	if err := w.until(turn); err != nil {
		return nil, h.giveUp(err)
	}
	return h, nil
}

// newStay begins a stay for a hold, and its Try, in whichever goroutine: one that has waited for it goes on to wait until it is decided,
// and wakes once. Client.mu is held.
func newStay(name string, h *hold) *stay {
	p := h.section.pending
	s := &stay{terms: h.section.terms, name: name, wants: p.wants, attempt: &attempt{once: p.once}}
	if s.attempt.decided = p.turn; p.turn == nil || p.line {
		s.attempt.decided = make(chan struct{})
	} else {
		p.turn = nil
	}
	s.client.stays.Set(name, s)
	h.rest(s)
	if !p.line {
		s.try()
	}
	return s
}

// pass begins the next stay for the first one of those that wait. Client.mu is held.
func (s *stay) pass() {
	h := s.waiters.first
	if h == nil {
		s.client.stays.Delete(s.name)
		return
	}
	s.waiters.remove(h)
	next := newStay(s.name, h)
	next.waiters, s.waiters = s.waiters, holds{}
}

// admit lets in who may come: into a stay that is open those who share it, up to the first who does not; as it begins, all of
// them. Client.mu is held.
func (s *stay) admit(begins bool) {
	for h := range s.waiters.all() {
		switch {
		case s.state == trying && s.holds.empty() && s.wants == h.section.pending.wants && !s.attempt.once, // whoever it began for has given up
			s.shares(h.section) && (begins || s.open()):
			s.waiters.remove(h)
			h.rest(s)
		case !begins || shared(s.wants) == "":
			s.exit()
			return
		}
	}
}

// rest has a hold that waits no more rest on s. Client.mu is held.
func (h *hold) rest(s *stay) {
	s.holds.add(h)
	h.stay = s
	if s.state == inside {
		h.enters()
		s.stop()
	}
	if turn := h.section.pending.turn; turn != nil {
		close(turn)
	}
}

// handOver has somebody else who waits answer for the Try, in place of h, and reports whether there is one. Nobody
// does for a Try that does not wait. Client.mu is held.
func (s *stay) handOver(h *hold) bool {
	for next := range s.waiters.all() {
		if next.section.pending.wants == s.wants && shared(s.wants) != "" && !s.attempt.once {
			s.waiters.remove(next)
			next.rest(s)
			h.leave()
			return true
		}
	}
	return false
}

// shares reports whether a section may be inside with those of s: the one that is to be alone, where nobody is. While
// s is about to be in any one of several groups nobody may.
func (s *stay) shares(x *section) bool {
	if shared(s.wants) == "" {
		return s.wants == x.pending.wants && s.isKept()
	}
	return s.wants.Len() == 1 && x.pending.wants.Has(protocol.Group(s.wants))
}

// shared is the group, or one of the groups, that those who want it share, "" where they are alone.
func shared(wants protocol.Groups) string {
	if protocol.Group(wants).Exclusive() {
		return ""
	}
	return string(wants)
}

// open reports whether one who shares may join at once: nobody does where the algorithm does not say that somebody else
// waits. Client.mu is held.
func (s *stay) open() bool { return s.state == inside && !s.closed && s.shard().info.Tells }

// joins reports whether a section that comes now may join the stay. Client.mu is held.
func (s *stay) joins(x *section) bool { return s.waiters.empty() && s.open() && s.shares(x) }

func (c *Client) joins(x *section, name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stays.Get(name)
	return s != nil && s.joins(x)
}

// ending: the turn ends without anybody else's doing, and nobody waits for it.
func (s *stay) ending() bool { return s.waiters.empty() && s.state == leaving }

// taken says who of this client has the turn, beside whom x may not come: whom users tell from each other, if they
// are told apart, and the group. c.mu is held.
func (s *stay) taken(x *section) error {
	who, verb := "this client", "holds"
	if first := s.holds.first; first != nil && first.section.label != "" {
		who = strconv.Quote(first.section.label)
	} else if shared(s.wants) == "" {
		return errors.New("this client holds or wants it already")
	}
	if s.state < inside {
		verb = "wants"
	}
	switch {
	case shared(s.wants) == "":
		return fmt.Errorf("%s %s it", who, verb)
	case s.shares(x) && s.state == inside:
		return fmt.Errorf("%s holds it in group %q, which nobody may join now", who, s.wants)
	}
	return fmt.Errorf("%s %s it in group %q", who, verb, s.wants)
}
