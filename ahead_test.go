package poundlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/server"
)

// TestHeadStartComesFirst: who has a head start is served before others that asked earlier, with tokens that grow.
func TestHeadStartComesFirst(t *testing.T) {
	t.Parallel()
	l, config := startLocal(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g, err := dial(t, config).Mutex("a").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	o := observe(t, l)
	defer o.Close()
	type entry struct {
		ahead time.Duration
		token uint64
	}
	entries := make(chan entry, 3)
	for k, ahead := range []time.Duration{0, time.Second / 2 * 59, time.Minute} {
		m := dial(t, config).Mutex("a").HeadStart(ahead)
		go func() {
			err := m.Do(ctx, func(_ context.Context, g *poundlock.Grant) error {
				entries <- entry{ahead, g.Token()}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
		eventually(t, "it waits at all servers", func() bool {
			waits := func(x *server.Lock) bool { return x != nil && x.Waiting > k }
			here := o.OneLock(ctx, o.Sessions(ctx), "a")
			return len(here) == 4 && !slices.ContainsFunc(here, func(x *server.Lock) bool { return !waits(x) })
		})
	}
	last := g.Token()
	if err := g.Unlock(); err != nil {
		t.Error(err)
	}
	for _, want := range []time.Duration{time.Minute, time.Second / 2 * 59, 0} {
		select {
		case e := <-entries:
			if e.ahead != want || e.token <= last {
				t.Errorf("one with a head start of %v enters with %d after %d, want %v", e.ahead, e.token, last, want)
			}
			last = e.token
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}
