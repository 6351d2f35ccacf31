package poundlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/node"
)

// TestSemaphoreOfOneClient: eight goroutines, three permits.
func TestSemaphoreOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newFake(t)
		s := c.Semaphore("s", 3)
		var mu sync.Mutex
		inside, most, entries := 0, 0, 0
		count := func(k int) {
			mu.Lock()
			defer mu.Unlock()
			inside += k
			entries += max(k, 0)
			most = max(most, inside)
		}
		begin := time.Now()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 5 {
					g, err := s.Acquire(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					count(1)
					time.Sleep(time.Second)
					count(-1)
					if err := g.Unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if most != 3 || entries != 40 {
			t.Errorf("%d at once, %d entries", most, entries)
		}
		// Three at a time and no pause: nobody waits while a permit is free.
		if d := time.Since(begin); d != 14*time.Second {
			t.Errorf("%v for 40 entries of a second, three at a time", d)
		}
		synctest.Wait()
		if k := c.lineCount(); k != 0 {
			t.Errorf("%d lines are left", k)
		}
	})
}

// waiting returns a semaphore of three permits that somebody else has, and a user
// that waits for all of them.
func waiting(t *testing.T, ctx context.Context) (*Client, *fakeNode, chan *Grant, chan error) {
	c, f := newFake(t)
	f.hold = true
	f.busy = true
	grants, errs := make(chan *Grant, 1), make(chan error, 1)
	go func() {
		g, err := c.Semaphore("s", 3).Acquire(ctx)
		grants <- g
		errs <- err
	}()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.users) != 3 {
		t.Errorf("waits for %d permits", len(f.users))
	}
	return c, f, grants, errs
}

// TestSemaphoreTakesTheFirst that becomes free, and gives back what comes with it.
func TestSemaphoreTakesTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f, grants, errs := waiting(t, t.Context())
		f.atCancel = func(node.User) { // the third comes as it is given up
			f.grant("s#1")
			f.atCancel = nil
		}
		f.mu.Lock()
		f.grant("s#2")
		f.grant("s#3")
		f.mu.Unlock()
		g := <-grants
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
		name := g.Names()[0]
		if len(g.Names()) != 1 || name != "s#2" && name != "s#3" || g.Context().Err() != nil {
			t.Errorf("names %q, %v", g.Names(), g.Context().Err())
		}
		synctest.Wait()
		f.mu.Lock()
		if len(f.users) != 1 || !f.inside[name] {
			t.Errorf("inside of %v, users of %v: more than one permit is kept", f.inside, f.users)
		}
		f.mu.Unlock()
		if err := g.Unlock(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if k := c.lineCount(); k != 0 {
			t.Errorf("%d lines are left", k)
		}
	})
}

func TestSemaphoreGivesUp(t *testing.T) {
	for name, x := range map[string]struct {
		end  func(c *Client, f *fakeNode, cancel func())
		want []error
	}{
		"context": {func(_ *Client, _ *fakeNode, cancel func()) { cancel() }, []error{ErrNotAcquired, context.Canceled}},
		"closed":  {func(c *Client, _ *fakeNode, _ func()) { c.Close() }, []error{ErrClosed}},
		"servers": {func(_ *Client, f *fakeNode, _ func()) { f.setAlive(1) }, []error{ErrNoQuorum}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c, f, grants, errs := waiting(t, ctx)
				x.end(c, f, cancel)
				if g := <-grants; g != nil {
					t.Error("a grant")
				}
				wantIs(t, <-errs, x.want...)
				synctest.Wait()
				if k := c.lineCount(); k != 0 {
					t.Errorf("%d lines are left", k)
				}
			})
		})
	}
}

func TestTryAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(t)
		s := c.Semaphore("s", 3)
		var names []string
		for range 3 {
			g, err := s.TryAcquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, g.Names()...)
		}
		slices.Sort(names)
		if !slices.Equal(names, []string{"s#1", "s#2", "s#3"}) {
			t.Errorf("permits %q", names)
		}
		begin := time.Now()
		_, err := s.TryAcquire(t.Context())
		wantIs(t, err, ErrNotAcquired)
		if time.Since(begin) != 0 || !strings.Contains(err.Error(), `semaphore "s"`) {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		f.hold = true // silent servers
		_, err = c.Semaphore("other", 100).TryAcquire(t.Context())
		wantIs(t, err, ErrNotAcquired, errPatience)
		if d := time.Since(begin); d != 1300*time.Millisecond {
			t.Errorf("tried for %v", d)
		}
	})
}

// halves is a semaphore of six permits whose locks belong to two shards of servers,
// the first to the shard that is down; the other shard has k of them.
func halves(t *testing.T) (c *Client, s *Semaphore, up, down *fakeNode, k int) {
	t.Helper()
	var table []Server
	for i, x := range append(servers(4), servers(4)...) {
		table = append(table, Server{Name: string("ab"[i/4]) + "/" + x.Name, Addr: fmt.Sprint("127.0.0.1:", 7000+i)})
	}
	c, f := newFakes(t, table)
	for i := 0; ; i++ {
		s = c.Semaphore(fmt.Sprint("s", i), 6)
		names, err := s.names()
		if err != nil {
			t.Fatal(err)
		}
		k = 0
		for _, name := range names {
			if c.shardOf(name) == c.shards[0] {
				k++
			}
		}
		if 2 <= k && k <= 4 && c.shardOf(names[0]) == c.shards[1] {
			break
		}
	}
	f[1].down()
	return c, s, f[0], f[1], k
}

// TestTryAcquireInShards: the permits of a shard that can be reached are had at once
// though another shard is down; when none of them is left, that is what is said.
func TestTryAcquireInShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, _, down, k := halves(t)
		begin := time.Now()
		for range k {
			g, err := s.TryAcquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer g.Unlock()
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("%v for what is free", d)
		}
		_, err := s.TryAcquire(t.Context())
		if wantIs(t, err, ErrNoQuorum); err == nil || !strings.Contains(err.Error(), "shard b: ") {
			t.Errorf("error %v", err)
		}
		if d := time.Since(begin); d != s.client.patience() {
			t.Errorf("tried for %v, want the patience of one attempt in all", d)
		}
		// It goes on with the next permit when nothing is heard for QuorumWait.
		s.client.config.QuorumWait = 200 * time.Millisecond
		time.AfterFunc(300*time.Millisecond, down.up)
		for range 6 - k {
			g, err := s.TryAcquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer g.Unlock()
		}
		_, err = s.TryAcquire(t.Context())
		if wantIs(t, err, ErrNotAcquired); errors.Is(err, ErrNoQuorum) {
			t.Errorf("error %v", err)
		}
	})
}

// TestAcquireInShards: while one shard is down the permits of the other are waited
// for, by one goroutine after the other, and its own too, should it come back.
func TestAcquireInShards(t *testing.T) {
	for name, x := range map[string]struct {
		end    func(up, down *fakeNode) // after a minute
		within time.Duration
		want   []error
	}{
		"a permit becomes free":    {func(up, _ *fakeNode) { up.up() }, 62 * time.Second, nil},
		"the other shard is back":  {func(_, down *fakeNode) { down.up() }, 62 * time.Second, nil},
		"both shards are down now": {func(up, _ *fakeNode) { up.down() }, 85 * time.Second, []error{ErrNoQuorum}},
		"the deadline": {
			func(_, _ *fakeNode) {}, 115 * time.Second,
			[]error{ErrNoQuorum, context.DeadlineExceeded},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s, up, down, _ := halves(t)
				up.hold, up.busy = true, true // somebody else has them
				ctx, cancel := context.WithTimeout(t.Context(), 115*time.Second)
				defer cancel()
				time.AfterFunc(time.Minute, func() { x.end(up, down) })
				begin := time.Now()
				var both sync.WaitGroup
				for range 2 {
					both.Go(func() {
						g, err := s.Acquire(ctx)
						if time.Since(begin) < time.Minute {
							t.Errorf("%v after %v", err, time.Since(begin))
						}
						if (err == nil) != (x.want == nil) {
							t.Errorf("error %v", err)
						}
						if wantIs(t, err, x.want...); err == nil {
							defer g.Unlock()
							time.Sleep(time.Second)
						}
					})
				}
				both.Wait()
				if d := time.Since(begin); d > x.within {
					t.Errorf("it took %v", d)
				}
				synctest.Wait()
				if k := c.lineCount(); k != 0 {
					t.Errorf("%d lines are left", k)
				}
			})
		})
	}
}

func TestBadSemaphores(t *testing.T) {
	c, f := newFake(t)
	for want, s := range map[string]*Semaphore{
		"a semaphore of 0 permits: want 1 to 100": c.Semaphore("s", 0),
		"a semaphore of -1 permits":               c.Semaphore("s", -1),
		"a semaphore of 101 permits":              c.Semaphore("s", 101),
		"a semaphore needs a name":                c.Semaphore("", 1),
		"control character":                       c.Semaphore("\n", 1),
		"permit 10 of a semaphore: lock name":     c.Semaphore(strings.Repeat("x", 1022), 10),
	} {
		for _, call := range []func(context.Context) (*Grant, error){s.Acquire, s.TryAcquire} {
			_, err := call(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), "poundlock: ") || !strings.Contains(err.Error(), want) ||
				errors.Is(err, ErrNotAcquired) {
				t.Errorf("error %v, want one with %q", err, want)
			}
		}
	}
	if got := f.logged(); len(got) != 0 {
		t.Errorf("the node saw %v", got)
	}
}
