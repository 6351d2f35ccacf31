package api

import (
	"context"
	"time"

	"github.com/poundlock/poundlock"
)

// A section is what a grant holds, a poundlock.Grant: one critical section for each
// of its locks.
type section interface {
	Tokens() []uint64
	Context() context.Context // ends when one of the locks is lost
	LeaseEnd() time.Time
	Unlock() error
}

// A cluster is what a Service needs of a poundlock.Client.
type cluster interface {
	acquire(ctx context.Context, names []string, try bool) (section, error)
	holder(ctx context.Context, name string) (poundlock.Leader, error)
	healthy() error
}

type client struct{ *poundlock.Client }

func (c client) acquire(ctx context.Context, names []string, try bool) (section, error) {
	lock := c.Locks(names...).Lock
	if try {
		lock = c.Locks(names...).TryLock
	}
	g, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// holder is the leader of the election whose lock has this name.
func (c client) holder(ctx context.Context, name string) (poundlock.Leader, error) {
	return c.Election(name).Leader(ctx)
}

func (c client) healthy() error { return c.Available() }
