package poundlock

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
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

var errPatience = errors.New("the servers did not decide in time")

// until returns nil once done is closed, or why the wait ended before.
func (w *wait) until(done <-chan struct{}) error {
	c := w.client
	bound := c.config.QuorumWait
	tick := time.NewTicker(max(bound/10, time.Millisecond))
	defer tick.Stop()
	for {
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
		case <-w.section.ctx.Done():
			switch { // what it comes from, if not from a loss
			case c.closed():
				return ErrClosed
			case w.ctx.Err() != nil:
				return w.over(ended(w.ctx))
			}
			return context.Cause(w.section.ctx)
		case <-w.patience:
			return w.over(errPatience)
		case <-tick.C:
		}
	}
}

// anyUp reports whether one of the shards has a quorum that can be reached.
func (w *wait) anyUp() bool { return slices.ContainsFunc(w.shards, (*shard).up) }

// connected waits for a quorum of the one shard: one attempt must not fail because this
// client has only just begun to dial these servers.
func (w *wait) connected() error {
	if w.anyUp() {
		return nil
	}
	g := w.shards[0]
	ctx, cancel := context.WithCancel(w.ctx)
	reached := make(chan struct{})
	var dialing sync.WaitGroup
	dialing.Go(func() {
		if g.node.WaitAlive(ctx, g.quorum) == nil {
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
		if !g.up() {
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
	return &failure{kind: ErrNoQuorum, why: err}
}

// A line is the queue of one lock name in this client: the node has one user a
// lock, so local users take turns. It is in Client.lines while somebody has the
// turn. Guarded by Client.mu.
type line struct {
	name    string
	shard   *shard
	hold    *hold     // of the one who has the turn; nil before its Try
	waiters list.List // of chan struct{}, closed when the turn comes
}

// takeTurn waits for the turn, first come first served. With once it waits only
// for a turn that is about to end, because its user has unlocked.
func (c *Client) takeTurn(w *wait, name string, once bool) (*line, error) {
	if w.ctx.Err() != nil {
		return nil, w.over(ended(w.ctx))
	}
	c.mu.Lock()
	if c.closed() {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	l := c.lines.Get(name)
	if l == nil {
		l = &line{name: name, shard: w.shards[0]}
		c.lines.Set(name, l)
		c.mu.Unlock()
		return l, nil
	}
	if once && !l.ending() {
		err := l.taken()
		c.mu.Unlock()
		return nil, err
	}
	turn := make(chan struct{})
	place := l.waiters.PushBack(turn)
	c.mu.Unlock()

	err := w.until(turn)
	if err == nil {
		return l, nil
	}
	c.mu.Lock()
	select {
	case <-turn: // it came in the meantime
		c.passTurn(l)
	default:
		l.waiters.Remove(place)
		if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrNoQuorum) {
			err = fmt.Errorf("%w: %w", err, l.taken())
		}
	}
	c.mu.Unlock()
	return nil, err
}

// ending: the turn ends without anybody else's doing, and nobody waits for it.
func (l *line) ending() bool {
	return l.waiters.Len() == 0 && l.hold != nil && l.hold.state == leaving && l.hold.left
}

// taken says who of this client has the turn: whom users tell from each other, if they
// are told apart. c.mu is held.
func (l *line) taken() error {
	if l.hold == nil || l.hold.section.label == "" {
		return errors.New("this client holds or wants it already")
	}
	verb := "wants"
	if l.hold.state != trying {
		verb = "holds"
	}
	return fmt.Errorf("%q %s it", l.hold.section.label, verb)
}

// passTurn gives the turn to the next user. c.mu is held.
func (c *Client) passTurn(l *line) {
	l.hold = nil
	if next := l.waiters.Front(); next != nil {
		close(l.waiters.Remove(next).(chan struct{}))
		return
	}
	c.lines.Delete(l.name)
}
