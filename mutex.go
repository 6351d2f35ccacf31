package poundlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/internal/slots"
)

// A Mutex is an exclusive lock, or several that are held together. Several
// goroutines may use it: they queue here, in the order of their calls.
type Mutex struct {
	client *Client
	names  []string // in canonical order
}

// Mutex returns the lock called name: 1 to 1024 bytes of UTF-8 without control
// characters, which Lock checks. It costs nothing until it is used.
func (c *Client) Mutex(name string) *Mutex { return c.Locks(name) }

// Locks returns the locks of these names as one: all of them are held, or none.
// They are acquired one after the other, in one canonical order (bytewise
// ascending) whatever the order here, so that two that name the same locks never
// wait for each other. Lock refuses a name that is given twice, and more than 1000.
//
// A lock that is held while a later one is awaited counts as held: towards the
// servers' budget of restarts, and for everybody else who wants it.
func (c *Client) Locks(names ...string) *Mutex {
	m := &Mutex{c, slices.Clone(names)}
	slices.Sort(m.names)
	return m
}

// Name is the name of the lock; of several, the names in canonical order with
// line feeds between them.
func (m *Mutex) Name() string { return strings.Join(m.names, "\n") }

// Lock waits for the lock. On error nothing is held. The error is
//
//   - ErrNotAcquired, wrapped with ctx's error or the reason why this process gave up;
//   - ErrNoQuorum, when fewer servers than a quorum could be reached for
//     Config.QuorumWait, or until ctx ended, or when ctx ended while too few servers
//     gave locks, because others drain;
//   - ErrClosed.
//
// The end of ctx after Lock returned changes nothing; its values are those of the
// grant's context.
//
// A wait that may be long makes the servers' budget of restarts tight, which
// counts from the first request to the end of the hold: give ctx a deadline.
func (m *Mutex) Lock(ctx context.Context) (*Grant, error) {
	return m.enter(ctx, context.WithoutCancel(ctx), false)
}

// TryLock makes one attempt and gives up with ErrNotAcquired as soon as somebody
// else seems to come first. It waits for answers of the servers, for a second and
// six clock bounds at most, a name. ErrNotAcquired does not prove that somebody
// holds the lock: two concurrent attempts at a free lock may both fail.
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

// enter acquires the locks; parent is the parent of the grant's context.
func (m *Mutex) enter(ctx, parent context.Context, once bool) (*Grant, error) {
	if err := slots.CheckNames(m.names); err != nil {
		return nil, fmt.Errorf("poundlock: %w", err)
	}
	s := newSection(parent, m.client)
	for _, name := range m.names {
		if err := s.acquire(ctx, name, once); err != nil {
			s.abandon()
			return nil, failed(name, err)
		}
	}
	if err := s.begin(); err != nil {
		s.abandon()
		return nil, failed(m.names[0], err)
	}
	return &Grant{s}, nil
}

// failed names the lock in an error; what is no sentinel yet is ErrNotAcquired.
func failed(name string, err error) error {
	for _, sentinel := range []error{ErrNotAcquired, ErrNoQuorum, ErrClosed} {
		if err == sentinel {
			return fmt.Errorf("%w: lock %q", err, name)
		}
		if errors.Is(err, sentinel) {
			return err
		}
	}
	return fmt.Errorf("%w: lock %q: %w", ErrNotAcquired, name, err)
}

// describe is "lock "a"" or "locks "a", "b"".
func describe(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	if len(names) == 1 {
		return "lock " + quoted[0]
	}
	return "locks " + strings.Join(quoted, ", ")
}
