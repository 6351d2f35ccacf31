package poundlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/protocol"
)

// A section is the critical section of one call: one hold a name. Its user is
// inside while all of them are held.
//
// There may be very many that do nothing: what matters only while the call waits, or to few of them, is apart.
type section struct {
	*terms
	values context.Context // those of the grant's context
	grant  Grant           // this one
	holds  []hold          // in canonical order, in memory for all; constant once the call has returned

	// Guarded by Client.mu.
	pending  *pending // nil once it has returned a grant
	lost     *failure // the first loss since then, nil if there was none
	revoked  bool     // what was lost is the right to the locks; they are held until the end of the bound
	unlocked bool
	bound    *bound  // nil: it has none
	ending   *ending // nil: nobody has asked for its context
}

// What is pending is the call that makes a section.
type pending struct {
	wants protocol.Groups // any of these until the first lock is held, then the one; or to be alone: "" or keeper
	lost  error           // the first loss, nil if there was none
	loss  chan struct{}   // closed by that
	name  string          // of the lock of its last hold
	once  bool            // that one does not wait for others
	line  bool            // it waits for its turn alone, and does not try
	turn  chan struct{}   // closed when that one rests on a stay, and it is decided if it is the first there; nil: it need not wait for that
}

// A bound is when a grant ends that is not unlocked.
type bound struct {
	end   time.Time   // of the grace, begun or to come: then the locks are given up, unless AwaitUnlock
	timer *time.Timer // the end of MaxHold, then of the grace; nil if none runs
}

// An ending is the context of a grant, which ends with the first loss.
type ending struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func newSection(values context.Context, t *terms, names int) *section {
	s := &section{terms: t, values: values, pending: &pending{loss: make(chan struct{})}, holds: make([]hold, 0, names)}
	s.grant = Grant{s}
	return s
}

// acquire adds one lock.
func (s *section) acquire(ctx context.Context, name string, once bool) error {
	c, began := s.client, time.Now()
	c.counters.wanted.Add(1)
	defer c.counters.wanted.Add(-1)
	h, err := s.try(ctx, name, once)
	if err != nil {
		c.refused(err)
		return err
	}
	c.granted(h, time.Since(began))
	return nil
}

func (s *section) try(ctx context.Context, name string, once bool) (*hold, error) {
	c := s.client
	g := c.shardOf(name)
	w := wait{client: c, shards: []*shard{g}, ctx: ctx, section: s}
	if once {
		patience := time.NewTimer(c.patience())
		defer patience.Stop()
		w.patience = patience.C
		if err := w.connected(name); err != nil {
			return nil, err
		}
	}
	h, err := c.takeTurn(&w, name, once)
	if err != nil {
		return nil, err
	}
	if err := w.until(h.stay.decision()); err != nil {
		return nil, h.giveUp(err)
	}
	return h, h.stay.enter(h)
}

// patience is how long one attempt waits for the servers.
func (c *Client) patience() time.Duration { return time.Second + 6*c.config.ClockBound }

// begin starts the grant, unless something was lost while the last of its locks was
// awaited.
func (s *section) begin() error {
	for k := range len(s.holds) - 1 { // the last one was looked at just now
		h := &s.holds[k]
		if err := h.stay.enter(h); err != nil {
			return err
		}
	}
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.pending.lost != nil {
		return s.pending.lost
	}
	s.pending = nil
	if d := s.client.config.MaxHold; d > 0 {
		s.bound = &bound{
			end:   time.Now().Add(d + s.client.config.Grace),
			timer: time.AfterFunc(d, func() { s.revoke(ErrMaxHold) }),
		}
	}
	return nil
}

// context is that of the grant, made when somebody asks for it first; then with says whether it also ends with the one whose values it has.
func (s *section) context(with bool) context.Context {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.ending != nil {
		return s.ending.ctx
	}
	parent, over := s.values, s.unlocked || s.lost != nil
	if !with || over { // whatever has become of that one since
		parent = context.WithoutCancel(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	if over {
		cancel(s.loss())
	}
	s.ending = &ending{ctx, cancel}
	return ctx
}

// lose ends the context of the user, or its wait. Client.mu is held.
func (s *section) lose(cause *failure) {
	switch {
	case s.pending != nil:
		s.pending.lose(cause)
	case s.lost == nil:
		s.lost = cause
		s.end(cause)
	}
}

// lose ends the wait of the user. Client.mu is held.
func (p *pending) lose(cause error) {
	if p.lost == nil {
		p.lost = cause
		close(p.loss)
	}
}

// loss is the first one as an error.
func (s *section) loss() error {
	if s.lost == nil {
		return nil
	}
	return s.lost
}

// end ends the context of the user, if it has one. Client.mu is held.
func (s *section) end(cause error) {
	if s.ending != nil {
		s.ending.cancel(cause)
	}
}

// revoke ends a grant whose time is over.
func (s *section) revoke(cause error) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.revokeLocked(cause, s.client.config.Grace)
}

// revokeLocked takes the locks from a user that has a grant: its context ends now,
// with ErrLost because of cause, and the locks are given up when it has unlocked or, unless
// Config.AwaitUnlock, after the grace. Until then the servers give them to nobody else.
// A second time only the end may come earlier: no grace prolongs what an earlier one,
// or Config.MaxHold, has set. It returns the time that is left. Client.mu is held.
func (s *section) revokeLocked(cause error, grace time.Duration) time.Duration {
	if s.unlocked {
		return 0
	}
	now := time.Now()
	if end := now.Add(grace); s.bound == nil {
		s.bound = &bound{end: end}
	} else if end.Before(s.bound.end) {
		s.bound.end = end
	}
	left := s.bound.end.Sub(now)
	if s.lost == nil { // else it came too late
		s.revoked = true
	}
	for k := range s.holds {
		s.holds[k].lose(cause)
	}
	s.stop()
	if !s.client.config.AwaitUnlock {
		s.bound.timer = time.AfterFunc(left, s.leave)
	}
	return max(0, left)
}

// stop ends the timer. Client.mu is held.
func (s *section) stop() {
	if s.bound != nil && s.bound.timer != nil {
		s.bound.timer.Stop()
		s.bound.timer = nil
	}
}

// leave gives every lock up that is still held, the last one first. It is also the end of a section that did not begin.
func (s *section) leave() {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	for k := range slices.Backward(s.holds) {
		s.holds[k].leave()
	}
}

// lockHeld locks Client.mu, after it has lost what nobody can hold any more, should nobody have been told yet. It does
// not once the user has unlocked, and says so.
func (s *section) lockHeld() error {
	var expired map[*stay]error
	for k := range s.holds {
		if x := s.holds[k].stay; x.expired() {
			if expired == nil {
				expired = map[*stay]error{}
			}
			expired[x] = x.departed()
		}
	}
	s.client.mu.Lock()
	if s.unlocked {
		s.client.mu.Unlock()
		return &failure{ErrUnlocked, locks(s.names()...), nil}
	}
	for stay, why := range expired {
		stay.lose(why)
	}
	return nil
}

func (s *section) group() string {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	return shared(s.holds[0].stay.wants)
}

// downgrade makes the section one of a group: those who wait for it in this client come in.
func (s *section) downgrade(group protocol.Group) error {
	if group != "" {
		if err := slots.CheckGroup(string(group)); err != nil {
			return fmt.Errorf("poundlock: %w", err)
		}
	}
	if info := &s.holds[0].stay.shard().info; !info.Shares {
		return fmt.Errorf("poundlock: %s: with %s whoever is alone cannot come down to group %q: unlock, and lock again", locks(s.names()...), info.Form(), group)
	}
	if err := s.lockHeld(); err != nil {
		return err
	}
	defer s.client.mu.Unlock()
	wants := s.holds[0].stay.wants
	switch {
	case s.lost != nil:
		return s.lost
	case shared(wants) == string(group):
		return nil
	case shared(wants) != "":
		next := "exclusive"
		if group != "" {
			next = fmt.Sprintf("one of group %q", group)
		}
		return fmt.Errorf("poundlock: %s: a grant of group %q cannot become %s: unlock, lock again, and look whether what was read still holds",
			locks(s.names()...), wants, next)
	}
	for k := range s.holds {
		h := &s.holds[k]
		h.stay.wants, h.stay.token, h.stay.used = protocol.Groups(group), h.token, 0
		s.client.audit.note(h, "downgrade")
		h.stay.shard().node.Downgrade(h.stay.name, group)
		h.stay.admit(true)
	}
	return nil
}

func (s *section) unlock() error {
	c := s.client
	if err := s.lockHeld(); err != nil {
		return err
	}
	s.unlocked = true
	lost := s.loss()
	s.stop()
	s.end(nil)
	c.mu.Unlock()
	s.leave()
	return lost
}

func (s *section) names() []string {
	names := make([]string, len(s.holds))
	for k := range s.holds {
		names[k] = s.holds[k].stay.name
	}
	return names
}

// leaveBy is the end of the grace; zero before it has begun, and when nothing is held.
func (s *section) leaveBy() time.Time {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if !s.revoked || s.unlocked {
		return time.Time{}
	}
	return s.bound.end
}

// leaseEnd is that of the lock that would be lost first, or when revoked ones are
// given up.
func (s *section) leaseEnd() time.Time {
	s.client.mu.Lock()
	var until time.Time // zero: nothing ends it but a lease
	if s.revoked && !s.client.config.AwaitUnlock {
		until = s.bound.end
	}
	over := s.unlocked || s.lost != nil && !s.revoked
	s.client.mu.Unlock()
	if over {
		return time.Time{}
	}
	var first time.Time
	for k := range s.holds {
		if end := s.holds[k].leaseEnd(); k == 0 || end.Before(first) {
			first = end
		}
	}
	if !until.IsZero() && until.Before(first) {
		return until
	}
	return first
}
