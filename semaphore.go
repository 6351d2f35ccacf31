package poundlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/poundlock/poundlock/internal/slots"
)

// A Semaphore lets a bounded number of holders in at a time: its permits. Several
// goroutines may use it.
type Semaphore struct {
	client  *Client
	name    string
	permits int
}

// Semaphore returns the semaphore called name with 1 to 100 permits, which Acquire
// checks. Permit i is the lock NAME#i: the permits of the semaphore "build" are
// the locks "build#1", "build#2" and so on, which status shows and whose names
// nothing else should use. Name may be that much shorter than a lock's.
//
// Nothing but the callers knows how many permits there are: where they do not
// agree, at most the largest of their numbers are inside.
func (c *Client) Semaphore(name string, permits int) *Semaphore {
	return &Semaphore{c, name, permits}
}

// names are those of the permits' locks.
func (s *Semaphore) names() ([]string, error) {
	names, err := slots.Permits(s.name, s.permits)
	if err != nil {
		return nil, fmt.Errorf("poundlock: %w", err)
	}
	return names, nil
}

// Acquire waits for a permit. The grant is that of the permit's lock, which
// Grant.Names tells; tokens grow permit by permit, so that a resource which
// compares them needs to know whose they are. Errors are those of Mutex.Lock.
//
// It tries one permit, chosen at random, which is enough while most are free. Else
// it waits for all of them at once, takes the one that comes first, and gives back
// what else comes before the others have heard of it. To wait for them in rotation
// would mean to wait for one while another is free, and to be overtaken by whoever
// comes at the right moment; who stands in every queue is first in every queue when
// its time has come. A wait costs one request a permit; of the goroutines of one
// client one waits in these queues at a time, first come first served.
func (s *Semaphore) Acquire(ctx context.Context) (*Grant, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	g, err := s.client.Mutex(names[rand.IntN(s.permits)]).TryLock(ctx)
	if err != nil && !errors.Is(err, ErrClosed) && ctx.Err() == nil {
		g, err = s.wait(ctx, names)
	}
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	return g, nil
}

// TryAcquire makes one attempt at each permit, one after the other from a random
// one on, and gives up with ErrNotAcquired when none succeeds. Like TryLock it
// waits for a second and six clock bounds at most, in all, and does not prove that
// every permit is taken.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Grant, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	parent := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeoutCause(ctx, s.client.patience(), errPatience)
	defer cancel()
	for _, i := range rand.Perm(s.permits) {
		g, err := s.client.Mutex(names[i]).enter(ctx, parent, true)
		if err == nil {
			return g, nil
		}
		if ctx.Err() != nil || !errors.Is(err, ErrNotAcquired) {
			return nil, s.failed(ctx, err)
		}
	}
	return nil, s.failed(ctx, errors.New("somebody else holds or wants each of them"))
}

// wait waits for all permits at once.
func (s *Semaphore) wait(ctx context.Context, names []string) (*Grant, error) {
	// No lock has the name of this line: names have no control characters.
	queue := wait{client: s.client, group: s.client.groupOf(names[0]), ctx: ctx, section: newSection(ctx, s.client)}
	defer queue.section.cancel(nil)
	turn, err := s.client.takeTurn(&queue, "\x00"+s.name, false)
	if err != nil {
		return nil, err
	}
	defer func() {
		s.client.mu.Lock()
		defer s.client.mu.Unlock()
		s.client.passTurn(turn)
	}()

	type result struct {
		grant *Grant
		err   error
	}
	results := make(chan result, len(names))
	parent := context.WithoutCancel(ctx)
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	for _, name := range names {
		go func() {
			g, err := s.client.Mutex(name).enter(ctx, parent, false)
			results <- result{g, err}
		}()
	}
	var first *Grant
	for range names {
		r := <-results
		switch {
		case r.grant == nil:
			if err == nil {
				err = r.err
			}
		case first == nil:
			first = r.grant
			enough()
		default:
			r.grant.Unlock() // lost or not, it is not needed
		}
	}
	if first == nil {
		return nil, err
	}
	return first, nil
}

// failed names the semaphore in an error that does not name a lock.
func (s *Semaphore) failed(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrClosed) || errors.Is(err, ErrNoQuorum):
		return err
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, ErrNotAcquired):
		return err
	}
	return fmt.Errorf("%w: permits of semaphore %q: %w", ErrNotAcquired, s.name, err)
}
