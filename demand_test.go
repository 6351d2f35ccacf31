package poundlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/poundlock/poundlock/node"
)

// shardsOf is a client of so many shards of four servers.
func shardsOf(t *testing.T, count int) (*Client, []*fakeNode) {
	t.Helper()
	var table []Server
	for i := range 4 * count {
		table = append(table, Server{Name: fmt.Sprintf("g%02d/s%d", i/4, i%4), Addr: fmt.Sprint("127.0.0.1:", 7000+i)})
	}
	return newFakes(t, table)
}

// TestIdle: sessions of a client of several shards end a minute after the last want, or after some leases; those of one shard never do.
func TestIdle(t *testing.T) {
	for _, x := range []struct {
		shards      int
		lease, want time.Duration
	}{{1, 10 * time.Second, 0}, {1, time.Minute, 0}, {2, time.Second, time.Minute}, {2, 10 * time.Second, time.Minute}, {25, time.Minute, 6 * time.Minute}} {
		c, _ := shardsOf(t, x.shards)
		c.config.Lease = x.lease
		if got := c.idle(); got != x.want {
			t.Errorf("%d shards, leases of %v: %v, want %v", x.shards, x.lease, got, x.want)
		}
		c.config.KeepSessions = true
		if got := c.idle(); got != 0 {
			t.Errorf("%d shards, whose sessions are kept: %v, want 0", x.shards, got)
		}
	}
}

// TestDialOne: one shard that has a quorum is enough, and others are dialed only while it has none. Where there is none anywhere, all are.
func TestDialOne(t *testing.T) {
	for name, x := range map[string]struct {
		down   int           // shards
		wait   time.Duration // 0: without end
		keep   bool          // sessions
		within time.Duration
		least  int // of shards that are dialed
		most   int
		want   error
	}{
		"all are up":                  {0, 0, false, 0, 1, 1, nil},
		"one is up":                   {24, 0, false, 5 * nextShards, 1, 25, nil},
		"one is up, for who hurries":  {24, 300 * time.Millisecond, false, 200 * time.Millisecond, 1, 25, nil},
		"one is up, among all dialed": {24, 0, true, 0, 1, 25, nil},
		"all are down":                {25, 0, false, 10 * time.Second, 25, 25, ErrNoQuorum},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, fakes := shardsOf(t, 25)
				for _, f := range fakes[:x.down] {
					f.down()
				}
				c.config.KeepSessions = x.keep
				ctx, cancel := context.WithCancel(t.Context())
				if x.wait > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), x.wait)
				}
				defer cancel()
				began := time.Now()
				err := c.awaitQuorum(ctx)
				synctest.Wait()
				if took := time.Since(began); !errors.Is(err, x.want) || took > x.within {
					t.Errorf("%v after %v: want %v within %v", err, took, x.want, x.within)
				}
				dialed := 0
				for k, f := range fakes {
					if f.awaited {
						dialed++
					}
					if shard := fmt.Sprintf("shard g%02d: s3: no route", k); err != nil && !strings.Contains(err.Error(), shard) {
						t.Errorf("%v: want %q", err, shard)
					}
				}
				if dialed < x.least || dialed > x.most {
					t.Errorf("%d shards are dialed, want %d to %d", dialed, x.least, x.most)
				}
			})
		})
	}
}

// TestHealthOfThoseWhoRest: a shard that this client wants nothing of is not one that cannot be reached.
func TestHealthOfThoseWhoRest(t *testing.T) {
	down := func(f *fakeNode) { f.down() }
	rests := func(r node.Rest) func(*fakeNode) { return func(f *fakeNode) { f.rests(r) } }
	up := func(*fakeNode) {}
	for name, x := range map[string]struct {
		shards             []func(*fakeNode)
		healthy, available string // the shards that the error names
		wanted             string // by Available
	}{
		"all are up":                {[]func(*fakeNode){up, up}, "", "", "0"},
		"one is up":                 {[]func(*fakeNode){rests(node.Unused), up, rests(node.Resting)}, "", "", "1"},
		"all rest":                  {[]func(*fakeNode){rests(node.Unused), rests(node.Resting), rests(node.Resting)}, "", "", "1"},
		"one is down":               {[]func(*fakeNode){down, rests(node.Resting), up}, "0", "", "2"},
		"one is down, others rest":  {[]func(*fakeNode){down, rests(node.Unused), rests(node.Resting)}, "0", "", "2"},
		"nothing else is known":     {[]func(*fakeNode){down, rests(node.Unused)}, "0", "0", "0 1"},
		"nothing is known":          {[]func(*fakeNode){rests(node.Unused), rests(node.Unused)}, "0 1", "0 1", "0 1"},
		"all are down":              {[]func(*fakeNode){down, down}, "0 1", "0 1", "0 1"},
		"one shard, which is up":    {[]func(*fakeNode){up}, "", "", "0"},
		"one shard, which is down":  {[]func(*fakeNode){down}, "0", "0", "0"},
		"down, and another one not": {[]func(*fakeNode){down, up}, "0", "", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, fakes := shardsOf(t, len(x.shards))
				for k, f := range fakes {
					x.shards[k](f)
				}
				named := func(err error) string {
					var all []string
					for k, f := range fakes {
						if err != nil && (strings.Contains(err.Error(), fmt.Sprintf("shard g%02d: ", k)) || len(fakes) == 1) {
							all = append(all, fmt.Sprint(k))
						}
						f.log = nil
					}
					return strings.Join(all, " ")
				}
				if got := named(c.Healthy()); got != x.healthy {
					t.Errorf("Healthy names %q, want %q", got, x.healthy)
				}
				err := c.Available()
				var wanted []string
				for k, f := range fakes {
					if len(f.logged()) > 0 {
						wanted = append(wanted, fmt.Sprint(k))
					}
				}
				if got := named(err); got != x.available || strings.Join(wanted, " ") != x.wanted {
					t.Errorf("Available names %q, and wants %q; want %q, %q", got, wanted, x.available, x.wanted)
				}
			})
		})
	}
}

// TestTooLateForOneThatRests: whoever is too late is told so, and not that servers are down of which nobody wanted anything.
func TestTooLateForOneThatRests(t *testing.T) {
	c, fakes := shardsOf(t, 2)
	for _, f := range fakes {
		f.rests(node.Resting)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Mutex("a").Lock(late)
	if wantIs(t, err, ErrNotAcquired); errors.Is(err, ErrNoQuorum) {
		t.Error(err)
	}
}

// TestTryOfThoseWhoRest: an attempt that has waited for servers in vain says so, although nobody has refused it.
func TestTryOfThoseWhoRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, fakes := shardsOf(t, 2)
		for _, f := range fakes {
			f.rests(node.Unused)
		}
		began := time.Now()
		_, err := c.Mutex("a").TryLock(t.Context())
		wantIs(t, err, ErrNoQuorum)
		if took := time.Since(began); took != c.patience() {
			t.Errorf("after %v, want %v", took, c.patience())
		}
	})
}

// TestPermitsOfThoseWhoRest: permits whose servers are there come first, and last those of servers that nothing good is known of.
func TestPermitsOfThoseWhoRest(t *testing.T) {
	c, fakes := shardsOf(t, 3)
	fakes[0].down()
	fakes[1].rests(node.Resting)
	for range 20 {
		names, err := c.Semaphore("s", 50).names()
		if err != nil {
			t.Fatal(err)
		}
		last := 2
		for _, name := range names {
			k := c.all.Of(name)
			if k > last {
				t.Fatalf("one of shard %d comes after one of %d", k, last)
			}
			last = k
		}
	}
}
