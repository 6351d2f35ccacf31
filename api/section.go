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
	Group() string
	Context() context.Context // ends when one of the locks is lost
	LeaseEnd() time.Time
	Downgrade(group string) error
	Unlock() error
}

// A cluster is what a Service needs of a poundlock.Client.
type cluster interface {
	// acquire takes locks for who, whom all the cluster may read of.
	acquire(ctx context.Context, who string, want request) (section, error)
	holders(ctx context.Context, name string) ([]poundlock.Holder, error)
	healthy() error
}

type client struct{ *poundlock.Client }

func (c client) acquire(ctx context.Context, who string, want request) (section, error) {
	m := c.Locks(want.names...).As(who).HeadStart(want.ahead)
	if len(want.groups) > 0 {
		m = m.In(want.groups[0], want.groups[1:]...)
	}
	lock := m.Lock
	if want.try {
		lock = m.TryLock
	}
	g, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (c client) holders(ctx context.Context, name string) ([]poundlock.Holder, error) {
	return c.Holders(ctx, name)
}

func (c client) healthy() error { return c.Available() }
