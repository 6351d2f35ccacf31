package poundlock

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/node"
)

// A lock that would not be had in time, because too many wait already, is refused at once: to whoever waits for a bounded time,
// and where nobody of this client has or wants it.
func TestCrowded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		held, err := c.Mutex("held").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.backlog = node.Backlog{Users: 5000, Wait: 3 * time.Second}
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
		began := time.Now()
		refused := func(err error) {
			t.Helper()
			if err == nil {
				t.Fatal("it is not refused")
			}
			wantIs(t, err, ErrNotAcquired)
			if took := time.Since(began); took > 0 || !strings.Contains(err.Error(), "5000 users wait already, for 3s") {
				t.Errorf("after %v: %v", took, err)
			}
		}
		_, err = c.Mutex("a").Lock(within(5 * time.Second))
		refused(err)
		_, err = c.Mutex("a").TryLock(t.Context())
		refused(err)
		for _, ctx := range []context.Context{t.Context(), within(7 * time.Second)} {
			g, err := c.Mutex("a").Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			g.Unlock()
			synctest.Wait()
		}
		_, err = c.Mutex("held").Lock(within(time.Second)) // it waits for another user of this client
		wantIs(t, err, ErrNotAcquired, context.DeadlineExceeded)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it waited for %v", took)
		}
		held.Unlock()
		synctest.Wait()
		for _, x := range []struct {
			stands, wait time.Duration
			refused      bool
		}{{2 * time.Second, time.Second, false}, {3 * time.Second, time.Second / 2, true}, {3 * time.Second, time.Second / 8, false}} {
			f.backlog = node.Backlog{Users: 5000, Wait: x.wait, Stands: x.stands}
			g, err := c.Mutex("a").Lock(within(5 * time.Second))
			if (err != nil) != x.refused {
				t.Errorf("what has stood for %v, and takes %v: %v", x.stands, x.wait, err)
			}
			if err == nil {
				g.Unlock()
				synctest.Wait()
			}
		}
	})
}
