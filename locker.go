package poundlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Locker returns m as a sync.Locker, for code that wants one. Prefer Lock and Do:
// a Locker can neither say that it failed nor that the lock was lost.
//
// Its Lock goes on for as long as trying again may help, also while no quorum can
// be reached. When it cannot (ctx has ended, the client is closed, the name is no
// name) it panics with the error, for it must not return without the lock. Its
// Unlock panics with the error if the lock was lost before, because what was done
// under it may have met what somebody else did, or if it is not locked. Each
// Locker is a lock of its own for the goroutines that use it, too: they wait for
// each other even after a loss. Those of a group share it, as they share the lock, and an
// Unlock gives back the oldest of their grants.
func (m *Mutex) Locker(ctx context.Context) sync.Locker {
	l := &locker{ctx: ctx, mutex: m}
	if m.groups == nil {
		l.turn = make(chan struct{}, 1)
	}
	return l
}

type locker struct {
	ctx   context.Context
	mutex *Mutex
	turn  chan struct{} // holds an element while a goroutine has the turn; nil: they share

	mu     sync.Mutex
	grants []*Grant
}

func (l *locker) Lock() {
	if l.turn != nil {
		select {
		case l.turn <- struct{}{}:
		case <-l.ctx.Done():
			panic(failed(l.mutex.Name(), l.ctx.Err()))
		case <-l.mutex.client.closing:
			panic(failed(l.mutex.Name(), ErrClosed))
		}
	}
	g, err := l.persist()
	if err != nil {
		l.passTurn()
		panic(err)
	}
	l.mu.Lock()
	l.grants = append(l.grants, g)
	l.mu.Unlock()
}

func (l *locker) passTurn() {
	if l.turn != nil {
		<-l.turn
	}
}

// persist tries again while that may help, with pauses that grow to a second.
func (l *locker) persist() (*Grant, error) {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		g, err := l.mutex.Lock(l.ctx)
		if err == nil {
			return g, nil
		}
		if l.ctx.Err() != nil || !errors.Is(err, ErrNotAcquired) && !errors.Is(err, ErrNoQuorum) {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-l.ctx.Done(): // the next attempt says so
		case <-l.mutex.client.closing:
		}
	}
}

func (l *locker) Unlock() {
	l.mu.Lock()
	if len(l.grants) == 0 {
		l.mu.Unlock()
		panic(errors.New("poundlock: unlock of a Locker that is not locked"))
	}
	g := l.grants[0]
	l.grants = slices.Delete(l.grants, 0, 1)
	l.mu.Unlock()
	err := g.Unlock()
	l.passTurn()
	if err != nil {
		panic(err)
	}
}
