package poundlock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/poundlock/poundlock"
)

// TestReadersAndWriters: readers of two clients hold the lock together, a writer does not get in beside them, nor a
// Mutex of the same name, and they get in again after the writer.
func TestReadersAndWriters(t *testing.T) {
	t.Parallel()
	_, config := startLocal(t)
	a, b, c := dial(t, config), dial(t, config), dial(t, config)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var grants []*poundlock.Grant
	for _, c := range []*poundlock.Client{a, b} {
		g, err := c.RWMutex("book").RLock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if g.Group() != poundlock.Shared || g.Token() == 0 {
			t.Errorf("a reader is in group %q with token %d", g.Group(), g.Token())
		}
		grants = append(grants, g)
	}
	for _, try := range []func(context.Context) (*poundlock.Grant, error){
		c.RWMutex("book").TryLock, c.Mutex("book").TryLock, c.Mutex("book").In("others").TryLock,
	} {
		if g, err := try(ctx); !errors.Is(err, poundlock.ErrNotAcquired) {
			t.Fatalf("beside readers: %v, %v", g, err)
		}
	}
	written := make(chan *poundlock.Grant)
	go func() {
		g, err := c.RWMutex("book").Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		written <- g
	}()
	for _, g := range grants {
		if err := g.Unlock(); err != nil {
			t.Error(err)
		}
	}
	g := <-written
	if g == nil {
		return
	}
	if g.Group() != "" || g.Token() <= max(grants[0].Token(), grants[1].Token()) {
		t.Errorf("the writer is in group %q, with token %d after %d and %d", g.Group(), g.Token(), grants[0].Token(), grants[1].Token())
	}
	if err := g.Unlock(); err != nil {
		t.Error(err)
	}
	if g, err := a.RWMutex("book").RLock(ctx); err != nil || g.Unlock() != nil {
		t.Error(err)
	}
}
