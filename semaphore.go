package poundlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
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
// A permit is exclusive. Grant.Downgrade of one lets nobody in: no Acquire asks for a group.
//
// Nothing but the callers knows how many permits there are: where they do not
// agree, at most the largest of their numbers are inside.
func (c *Client) Semaphore(name string, permits int) *Semaphore {
	return &Semaphore{c, name, permits}
}

// names are those of the permits' locks, in the order in which to try them: at random,
// but first those whose servers are there, and last those of which nothing good is known.
func (s *Semaphore) names() ([]string, error) {
	names, err := slots.Permits(s.name, s.permits)
	if err != nil {
		return nil, fmt.Errorf("poundlock: %w", err)
	}
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	class := func(name string) int {
		switch g := s.client.shardOf(name); {
		case g.up():
			return 0
		case g.node.Rest() == node.Resting: // to be dialed
			return 1
		}
		return 2
	}
	slices.SortStableFunc(names, func(a, b string) int { return class(a) - class(b) })
	return names, nil
}

// shards are those of the permits' locks.
func (s *Semaphore) shards(names []string) (all []*shard) {
	for _, name := range names {
		if g := s.client.shardOf(name); !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	return all
}

// Acquire waits for a permit. The grant is that of the permit's lock, which
// Grant.Names tells; tokens grow permit by permit, so that a resource which
// compares them needs to know whose they are. Errors are those of Mutex.Lock; where
// the permits belong to several shards of servers it goes on while one of these can be
// reached, and says ErrNoQuorum if ctx ends while another one cannot.
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
	g, err := s.client.Mutex(names[0]).TryLock(ctx)
	if err != nil && !errors.Is(err, ErrClosed) && ctx.Err() == nil {
		g, err = s.wait(ctx, names)
	}
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	return g, nil
}

// TryAcquire makes one attempt at each permit, one after the other in random order,
// and gives up with ErrNotAcquired when none succeeds, or with ErrNoQuorum when the
// servers of some could not be reached. Like TryLock it waits for a second and six
// clock bounds at most, in all, and does not prove that every permit is taken.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Grant, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	values := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, s.client.patience(), errPatience)
	defer cancel()
	var down error
	for _, name := range names {
		g, err := s.client.Mutex(name).enter(ctx, values, true)
		switch {
		case err == nil:
			return g, nil
		case errors.Is(err, ErrNoQuorum): // another permit may have other servers
			down = err
		case !errors.Is(err, ErrNotAcquired):
			return nil, err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, s.failed(ctx, cmp.Or(down, errors.New("somebody else holds or wants each of them")))
}

// wait waits for all permits at once.
func (s *Semaphore) wait(ctx context.Context, names []string) (*Grant, error) {
	// No lock has the name of this line: names have no control characters.
	queue := wait{client: s.client, shards: s.shards(names), ctx: ctx, section: newSection(ctx, &s.client.usual, 1)}
	queue.section.pending.line = true
	defer queue.section.leave()
	_, err := s.client.takeTurn(&queue, "\x00"+s.name, false)
	if err != nil {
		return nil, err
	}

	type result struct {
		grant *Grant
		err   error
	}
	results := make(chan result, len(names))
	values := ctx
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	for _, name := range names {
		go func() {
			g, err := s.client.Mutex(name).enter(ctx, values, false)
			for errors.Is(err, ErrNoQuorum) && queue.anyUp() && ctx.Err() == nil {
				// It took Config.QuorumWait, and others are waited for all the same.
				g, err = s.client.Mutex(name).enter(ctx, values, false)
			}
			results <- result{g, err}
		}()
	}
	var first *Grant
	for range names {
		r := <-results
		switch {
		case r.grant == nil:
			if err == nil || errors.Is(r.err, ErrNoQuorum) {
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
	return &failure{ErrNotAcquired, subject{"permits of semaphore", []string{s.name}}, err}
}
