package poundlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/transport"
)

// A Mutex is an exclusive lock. Several goroutines may use it: they queue here,
// in the order of their calls.
type Mutex struct {
	client *Client
	name   string
}

// Mutex returns the lock called name: 1 to 1024 bytes of UTF-8 without control
// characters, which Lock checks. It costs nothing until it is used.
func (c *Client) Mutex(name string) *Mutex { return &Mutex{c, name} }

// Name is the name of the lock.
func (m *Mutex) Name() string { return m.name }

// Lock waits for the lock. On error nothing is held: ErrNotAcquired wrapped with
// ctx's error or the reason why this process gave up, ErrNoQuorum when ctx ended
// while fewer servers than a quorum could be reached or that lasted for
// Config.QuorumWait, or ErrClosed. The end of ctx after Lock returned changes
// nothing; its values are those of the grant's context.
//
// A wait that may be long makes the servers' budget of restarts tight, which
// counts from the first request to the end of the hold: give ctx a deadline.
func (m *Mutex) Lock(ctx context.Context) (*Grant, error) {
	return m.enter(ctx, context.WithoutCancel(ctx), false)
}

// TryLock makes one attempt and gives up with ErrNotAcquired as soon as somebody
// else seems to come first. It waits for answers of the servers, for a second and
// six clock bounds at most. ErrNotAcquired does not prove that somebody holds the
// lock: two concurrent attempts at a free lock may both fail.
func (m *Mutex) TryLock(ctx context.Context) (*Grant, error) {
	return m.enter(ctx, context.WithoutCancel(ctx), true)
}

// Do calls f under the lock and unlocks. The context of f is the grant's, made
// from ctx: it also ends with ctx. The error joins f's with ErrLost if the lock
// was lost before f returned. f may unlock earlier.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context, g Grant) error) error {
	g, err := m.enter(ctx, ctx, false)
	if err != nil {
		return err
	}
	defer g.Unlock() // should f panic
	err = f(g.Context(), *g)
	if unlockErr := g.Unlock(); errors.Is(unlockErr, ErrLost) {
		err = errors.Join(err, unlockErr)
	}
	return err
}

// enter acquires the lock; parent is the parent of the grant's context.
func (m *Mutex) enter(ctx, parent context.Context, once bool) (*Grant, error) {
	c := m.client
	if err := transport.CheckName(m.name); err != nil {
		return nil, fmt.Errorf("poundlock: %w", err)
	}
	w := wait{client: c, group: c.groupOf(m.name), ctx: ctx}
	if once {
		patience := time.NewTimer(time.Second + 6*c.config.ClockBound)
		defer patience.Stop()
		w.patience = patience.C
	}
	l, err := c.takeTurn(&w, m.name, once)
	if err != nil {
		return nil, m.failed(err)
	}
	h := newHold(parent, c, l)
	if err := w.group.node.Try(node.Mutex, m.name, h, once); err != nil {
		h.Rem(err.Error())
	}
	err = w.until(h.decided)
	if err != nil {
		// The process answers with Rem, or was in the critical section before it
		// heard of this.
		w.group.node.Cancel(m.name)
		<-h.decided
	} else {
		err = h.enter()
	}
	if err != nil {
		h.unlock()
		return nil, m.failed(err)
	}
	return &Grant{h}, nil
}

// failed names the lock in an error; what is no sentinel yet is ErrNotAcquired.
func (m *Mutex) failed(err error) error {
	for _, sentinel := range []error{ErrNotAcquired, ErrNoQuorum, ErrClosed} {
		if err == sentinel {
			return fmt.Errorf("%w: lock %q", err, m.name)
		}
		if errors.Is(err, sentinel) {
			return err
		}
	}
	return fmt.Errorf("%w: lock %q: %w", ErrNotAcquired, m.name, err)
}
