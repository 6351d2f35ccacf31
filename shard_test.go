package poundlock_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/server"
)

// A sharded cluster is two shards of four servers, a and b.
type sharded struct {
	config poundlock.Config
	shards slots.Shards
	stop   map[string]func() // of the servers of a shard
}

func startShards(t *testing.T) *sharded {
	t.Helper()
	dir := proctest.SocketDir(t)
	c := &sharded{stop: map[string]func(){}}
	var table []node.Peer
	for _, shard := range []string{"a", "b"} {
		for i := range 4 {
			p := node.Peer{Name: fmt.Sprintf("%s/s%d", shard, i+1), Addr: "unix:" + filepath.Join(dir, fmt.Sprint(shard, i+1))}
			table = append(table, p)
			c.config.Servers = append(c.config.Servers, poundlock.Server(p))
		}
	}
	c.shards = slots.Split(table)
	for _, g := range c.shards {
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		for _, p := range g.Servers {
			s, err := server.New(server.Config{Name: p.Name, Servers: table})
			if err != nil {
				t.Fatal(err)
			}
			running.Go(func() {
				if err := s.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		c.stop[g.Name] = func() { cancel(); running.Wait() }
		t.Cleanup(c.stop[g.Name])
	}
	return c
}

// lockOf is the name of a lock that belongs to a shard.
func (c *sharded) lockOf(shard string, k int) string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("lock-%d-%d", k, i)
		if c.shards[c.shards.Of(name)].Name == shard {
			return name
		}
	}
}

// Locks of both shards exclude, each in its own.
func TestShards(t *testing.T) {
	t.Parallel()
	c := startShards(t)
	first, second := dial(t, c.config), dial(t, c.config)
	for _, shard := range []string{"a", "b"} {
		name := c.lockOf(shard, 0)
		g, err := first.Mutex(name).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := second.Mutex(name).TryLock(t.Context()); !errors.Is(err, poundlock.ErrNotAcquired) {
			t.Errorf("shard %s: a second holder: %v", shard, err)
		}
		if time.Until(g.LeaseEnd()) <= 0 {
			t.Errorf("shard %s: the lease ends at %v", shard, g.LeaseEnd())
		}
		if err := g.Unlock(); err != nil {
			t.Error(err)
		}
		if g, err = second.Mutex(name).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.Unlock()
	}
	if err := first.Healthy(); err != nil {
		t.Error(err)
	}
}

// connected are the shards whose servers a client has sessions with, and resting those that it need not have any with.
func connected(c *poundlock.Client) (connected, resting string) {
	for _, s := range c.Stats().Servers {
		shard, _, _ := strings.Cut(s.Name, "/")
		if s.Connected && !strings.HasSuffix(connected, shard) {
			connected += shard
		}
		if s.Resting && !strings.HasSuffix(resting, shard) {
			resting += shard
		}
	}
	return connected, resting
}

// Dial dials the servers of one shard, and a lock those of its own.
func TestShardsOnDemand(t *testing.T) {
	t.Parallel()
	c := startShards(t)
	first := map[string]bool{}
	for k := 0; k < 50 && len(first) < 2; k++ {
		client := dial(t, c.config)
		one, rest := connected(client)
		if other := map[string]string{"a": "b", "b": "a"}[one]; other == "" || rest != other {
			t.Fatalf("connected with %q, %q rest", one, rest)
		}
		first[one] = true
		for range 3 { // of each shard, and of what rests and what does not
			if err := errors.Join(client.Healthy(), client.Available()); err != nil {
				t.Error(err)
			}
			if err := client.Mutex(c.lockOf(one, k)).Do(t.Context(), func(context.Context, *poundlock.Grant) error { return nil }); err != nil {
				t.Error(err)
			}
		}
		if now, _ := connected(client); now != one {
			t.Errorf("connected with %q, after locks of %q", now, one)
		}
		if _, err := client.Holder(t.Context(), c.lockOf("a", k)); err != nil {
			t.Error(err)
		}
		if _, err := client.Holder(t.Context(), c.lockOf("b", k)); err != nil {
			t.Error(err)
		}
		if now, rest := connected(client); now != "ab" || rest != "" {
			t.Errorf("connected with %q, %q rest", now, rest)
		}
		if err := client.Healthy(); err != nil {
			t.Error(err)
		}
		client.Close()
	}
	if len(first) < 2 {
		t.Errorf("50 clients have dialed shard %v first", first)
	}
	client, err := poundlock.Connect(c.config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for end := time.Now().Add(time.Minute); client.Available() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(client.Available())
		}
	}
}

// A client that was killed and had locks of every shard is closed at every one.
func TestCloseKilledOfShards(t *testing.T) {
	t.Parallel()
	c := startShards(t)
	holder, next := dial(t, c.config), dial(t, c.config)
	for _, shard := range []string{"a", "b"} {
		if _, err := holder.Mutex(c.lockOf(shard, 0)).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := poundlock.CloseKilled(t.Context(), c.config, holder.Secret()); err != nil {
		t.Fatal(err)
	}
	for _, shard := range []string{"a", "b"} {
		if _, err := next.Mutex(c.lockOf(shard, 0)).TryLock(t.Context()); err != nil {
			t.Errorf("shard %s: %v", shard, err)
		}
	}
}

// takePermits takes those of a semaphore that shard a has, one after the other, and
// nothing more.
func (c *sharded) takePermits(t *testing.T, client *poundlock.Client, name string) {
	names, err := slots.Permits(name, 8)
	if err != nil {
		t.Error(err)
	}
	for _, permit := range names {
		if c.shards[c.shards.Of(permit)].Name != "a" {
			continue
		}
		g, err := client.Semaphore(name, len(names)).TryAcquire(t.Context())
		if err != nil {
			t.Errorf("%s: %v, and one is free", name, err)
			return
		}
		defer g.Unlock()
	}
	if _, err := client.Semaphore(name, len(names)).TryAcquire(t.Context()); !errors.Is(err, poundlock.ErrNoQuorum) {
		t.Errorf("%s: %v, and all are taken that can be reached", name, err)
	}
}

// When one shard is down the names of the other are served, to clients that were there
// and to new ones; its own fail in time with an error that says which shard it is.
func TestShardDown(t *testing.T) {
	t.Parallel() // it waits, most of the time
	lane.CI.Need(t, "six seconds of a shard that is down")
	c := startShards(t)
	c.config.QuorumWait = 2 * time.Second
	early := dial(t, c.config)
	alive, dead := c.lockOf("a", 0), c.lockOf("b", 0)
	held, err := early.Mutex(c.lockOf("a", 1)).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.stop["b"]()
	late := dial(t, c.config)
	var both sync.WaitGroup
	for what, client := range map[string]*poundlock.Client{"early": early, "late": late} {
		both.Go(func() {
			if err := client.Mutex(alive).Do(t.Context(), func(context.Context, *poundlock.Grant) error { return nil }); err != nil {
				t.Errorf("%s client: %v", what, err)
			}
			c.takePermits(t, client, "permits of the "+what+" client")
			ctx, cancel := context.WithTimeout(t.Context(), 20*c.config.QuorumWait)
			defer cancel()
			_, err := client.Mutex(dead).Lock(ctx)
			if ctx.Err() != nil || !errors.Is(err, poundlock.ErrNoQuorum) {
				t.Errorf("%s client: a lock of the dead shard: %v", what, err)
			}
			for _, err := range []error{err, client.Healthy()} {
				if err == nil || !strings.Contains(err.Error(), "shard b") || !strings.Contains(err.Error(), "b/s4 (unix:") ||
					strings.Contains(err.Error(), "a/s1") {
					t.Errorf("%s client: %v: want what the servers of shard b say", what, err)
				}
			}
		})
	}
	both.Wait()
	if err := early.Available(); err != nil {
		t.Errorf("one shard is up: %v", err)
	}
	if err := held.Unlock(); err != nil {
		t.Error(err)
	}

	c.stop["a"]()
	_, err = poundlock.Dial(t.Context(), c.config)
	if !errors.Is(err, poundlock.ErrNoQuorum) || !strings.Contains(err.Error(), "shard a: ") ||
		!strings.Contains(err.Error(), "shard b: ") {
		t.Errorf("both shards are down: %v", err)
	}
	if err := early.Available(); !errors.Is(err, poundlock.ErrNoQuorum) {
		t.Errorf("both shards are down: %v", err)
	}
}

// A client that knows other shards is refused, with both lists: it would look for some
// locks elsewhere.
func TestOtherShards(t *testing.T) {
	t.Parallel()
	c := startShards(t)
	c.config.QuorumWait = 2 * time.Second
	only := c.config
	only.Servers = only.Servers[:4]
	_, err := poundlock.Dial(t.Context(), only)
	if !errors.Is(err, poundlock.ErrNoQuorum) || !strings.Contains(err.Error(), "shards: a,b there, a here") {
		t.Errorf("%v", err)
	}
}

// One attempt right after Dial waits for the shard that it needs, which Dial need not
// have done.
func TestTryAfterDial(t *testing.T) {
	t.Parallel()
	c := startShards(t)
	for k := range 20 {
		client := dial(t, c.config)
		for _, shard := range []string{"a", "b"} {
			g, err := client.Mutex(c.lockOf(shard, k)).TryLock(t.Context())
			if err != nil {
				t.Fatalf("shard %s: %v", shard, err)
			}
			if err := g.Unlock(); err != nil {
				t.Error(err)
			}
		}
	}
}
