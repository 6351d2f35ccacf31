package api

import (
	"context"
	"errors"
	"time"

	"github.com/poundlock/poundlock"
)

// A section is the critical sections of a grant.
type section interface {
	Tokens() []uint64
	Context() context.Context // ends when one of them is lost
	LeaseEnd() time.Time      // of the one that is certain for the shortest time
	Unlock() error
}

// enter takes locks of a client one after the other, in the order of their names.
func enter(ctx context.Context, c *poundlock.Client, names []string, try bool) (section, error) {
	several := &sections{}
	several.ctx, several.cancel = context.WithCancelCause(context.Background())
	for _, name := range names {
		m := c.Mutex(name)
		lock := m.Lock
		if try {
			lock = m.TryLock
		}
		g, err := lock(ctx)
		if err == nil {
			several.add(g)
			if g = several.grants[0]; several.ctx.Err() == nil {
				continue
			}
			err = context.Cause(several.ctx)
		}
		several.Unlock()
		return nil, err
	}
	return several, nil
}

// sections are the critical sections of several locks.
type sections struct {
	grants []*poundlock.Grant
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (s *sections) add(g *poundlock.Grant) {
	s.grants = append(s.grants, g)
	context.AfterFunc(g.Context(), func() { s.cancel(context.Cause(g.Context())) })
}

func (s *sections) Context() context.Context { return s.ctx }

func (s *sections) Tokens() []uint64 {
	tokens := make([]uint64, len(s.grants))
	for i, g := range s.grants {
		tokens[i] = g.Token()
	}
	return tokens
}

func (s *sections) LeaseEnd() time.Time {
	end := s.grants[0].LeaseEnd()
	for _, g := range s.grants {
		if e := g.LeaseEnd(); e.Before(end) {
			end = e
		}
	}
	return end
}

func (s *sections) Unlock() error {
	var errs []error
	for _, g := range s.grants {
		errs = append(errs, g.Unlock())
	}
	return errors.Join(errs...)
}
