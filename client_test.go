package poundlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/fence"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/server"
)

func TestMain(m *testing.M) {
	lane.Waits()
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must come at last, on any machine.
const patience = time.Minute

// startLocal starts a cluster of four servers and returns how to reach it.
func startLocal(t *testing.T) (*server.Local, poundlock.Config) {
	t.Helper()
	l, err := server.StartLocal(server.LocalConfig{Dir: proctest.SocketDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	var c poundlock.Config
	for _, s := range l.Servers() {
		c.Servers = append(c.Servers, poundlock.Server(s))
	}
	return l, c
}

func dial(t *testing.T, c poundlock.Config) *poundlock.Client {
	t.Helper()
	client, err := poundlock.Dial(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// TestExclusion: clients and local users of each, one counter that is right only
// under the lock, tokens that grow.
func TestExclusion(t *testing.T) {
	t.Parallel()
	_, config := startLocal(t)
	const clients, users, rounds = 3, 3, 20
	var inside, entries int
	var last uint64
	var mu sync.Mutex // guards the above, and is never contended under the lock
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range clients {
		m := dial(t, config).Mutex("counter")
		for range users {
			all.Go(func() {
				for range rounds {
					err := m.Do(ctx, func(ctx context.Context, g *poundlock.Grant) error {
						mu.Lock()
						inside++
						if inside != 1 {
							t.Errorf("%d are inside", inside)
						}
						if g.Token() <= last {
							t.Errorf("token %d after %d", g.Token(), last)
						}
						last = g.Token()
						entries++
						mu.Unlock()
						time.Sleep(100 * time.Microsecond)
						mu.Lock()
						inside--
						mu.Unlock()
						return ctx.Err()
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	if entries != clients*users*rounds {
		t.Errorf("%d entries", entries)
	}
}

// TestOneServerForgets while a lock is held and another client waits for it.
func TestOneServerForgets(t *testing.T) {
	t.Parallel()
	l, config := startLocal(t)
	first, second := dial(t, config), dial(t, config)
	for i := range l.Servers() {
		g, err := first.Mutex("a").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		entered := make(chan error)
		go func() {
			g, err := second.Mutex("a").Lock(context.Background())
			if err == nil {
				err = g.Unlock()
			}
			entered <- err
		}()
		time.Sleep(50 * time.Millisecond)
		if err := errors.Join(l.Stop(i), l.Start(i)); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-entered:
			t.Fatalf("entered (%v) while the lock was held", err)
		case <-g.Context().Done():
			t.Fatal(context.Cause(g.Context()))
		case <-time.After(200 * time.Millisecond):
		}
		if err := g.Unlock(); err != nil {
			t.Error(err)
		}
		if err := <-entered; err != nil {
			t.Error(err)
		}
	}
}

// TestQuorumLost: a holder whose servers all fail hears of it, and so does each of those who share a hold.
func TestQuorumLost(t *testing.T) {
	t.Parallel()
	l, config := startLocal(t)
	config.Lease = 500 * time.Millisecond
	c := dial(t, config)
	g, err := c.Mutex("a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	grants := []*poundlock.Grant{g}
	for range 3 {
		r, err := c.RWMutex("read").RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		grants = append(grants, r)
	}
	if end := time.Until(g.LeaseEnd()); end <= 0 && g.Context().Err() == nil || end > config.Lease {
		t.Errorf("certain for %v", end)
	}
	for i := range l.Servers() {
		if err := l.Stop(i); err != nil {
			t.Error(err)
		}
	}
	for _, g := range grants {
		select {
		case <-g.Context().Done():
		case <-time.After(patience):
			t.Fatal("the holder of a dead cluster's lock was not told")
		}
		if err := context.Cause(g.Context()); !errors.Is(err, poundlock.ErrLost) {
			t.Errorf("cause %v", err)
		}
		if err := g.Unlock(); !errors.Is(err, poundlock.ErrLost) {
			t.Errorf("Unlock: %v", err)
		}
	}
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	if _, err := c.Mutex("b").Lock(soon()); !errors.Is(err, poundlock.ErrNoQuorum) {
		t.Errorf("Lock on a dead cluster: %v", err)
	}
	config.QuorumWait = 200 * time.Millisecond // from here on nobody is waited for in earnest
	if _, err := poundlock.Dial(t.Context(), config); !errors.Is(err, poundlock.ErrNoQuorum) {
		t.Errorf("Dial to a dead cluster: %v", err)
	} else {
		t.Log(err)
	}
}

// TestTryLocks: of two clients that try one free lock at once at most one gets
// it; that both fail is possible and rare; once both have ended a try succeeds.
func TestTryLocks(t *testing.T) {
	t.Parallel()
	_, config := startLocal(t)
	clients := []*poundlock.Client{dial(t, config), dial(t, config)}
	neither := 0
	const rounds = 50
	for range rounds {
		grants := make([]*poundlock.Grant, 2)
		var all sync.WaitGroup
		for i, c := range clients {
			all.Go(func() {
				g, err := c.Mutex("free").TryLock(t.Context())
				if err != nil && !errors.Is(err, poundlock.ErrNotAcquired) {
					t.Error(err)
				}
				grants[i] = g
			})
		}
		all.Wait()
		held := 0
		for _, g := range grants {
			if g != nil {
				held++
				if err := g.Unlock(); err != nil {
					t.Error(err)
				}
			}
		}
		switch held {
		case 0:
			neither++
		case 2:
			t.Fatal("both hold it")
		}
		deadline := time.Now().Add(patience)
		for {
			g, err := clients[0].Mutex("free").TryLock(t.Context())
			if err == nil {
				g.Unlock()
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("a free lock cannot be had: %v", err)
			}
		}
	}
	t.Logf("neither got the lock in %d of %d rounds", neither, rounds)
	if neither == rounds {
		t.Error("of two concurrent tries none ever succeeds")
	}
}

// A room is what a lock guards: those of one group may be inside together, or one of none, with tokens that grow.
type room struct {
	mu     sync.Mutex
	fence  fence.Checker
	group  string
	inside int
	token  uint64
}

func (r *room) enter(t *testing.T, group string, token uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	alone := group == ""
	if r.inside > 0 && (alone || group != r.group) {
		t.Errorf("%q meets %d of %q inside", group, r.inside, r.group)
	}
	if err := r.fence.CheckGroup("a", group, token); err != nil || alone && token == r.token {
		t.Errorf("token %d of %q after %d of %q: %v", token, group, r.token, r.group, err)
	}
	r.group, r.token = group, token
	r.inside++
}

func (r *room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside--
}

// TestStorm: users that wait for a random and mostly too short time, so that
// cancellations meet grants, while one server after the other forgets. Nobody
// meets anybody inside of the one lock, nor in the other whom it does not share with, tokens grow, and nothing is left behind.
func TestStorm(t *testing.T) {
	t.Parallel()
	l, config := startLocal(t)
	const clients, users, names = 3, 4, 2
	groups := [names][]string{{""}, {"r", "r", "q", ""}}
	var rooms [names]room
	var rounds [clients * users]atomic.Int32
	var entered, gaveUp atomic.Int32
	var over atomic.Bool
	var all sync.WaitGroup
	for k := range clients {
		c := dial(t, config)
		for u := range users {
			all.Go(func() {
				for ; !over.Load(); rounds[k*users+u].Add(1) {
					name := rand.IntN(names)
					m := c.Mutex(string(rune('a' + name))).In(groups[name][rand.IntN(len(groups[name]))])
					most := 10 * time.Millisecond
					if rand.IntN(8) == 0 {
						most = 500 * time.Millisecond // in which a slow machine gives a lock, too
					}
					ctx, cancel := context.WithTimeout(t.Context(), rand.N(most))
					var g *poundlock.Grant
					var err error
					if rand.IntN(4) == 0 {
						g, err = m.TryLock(ctx)
					} else {
						g, err = m.Lock(ctx)
					}
					cancel()
					if (g == nil) == (err == nil) {
						t.Errorf("grant %v and error %v", g, err)
					}
					if err != nil {
						gaveUp.Add(1)
						if !errors.Is(err, poundlock.ErrNotAcquired) {
							t.Error(err)
						}
						continue
					}
					entered.Add(1)
					rooms[name].enter(t, g.Group(), g.Token())
					time.Sleep(time.Duration(rand.Int64N(int64(200 * time.Microsecond))))
					rooms[name].leave()
					if err := g.Unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	begin := time.Now()
	for time.Since(begin) < 2*time.Second || (entered.Load() < 20 || gaveUp.Load() < 20) && time.Since(begin) < patience {
		time.Sleep(100 * time.Millisecond)
		forget(t, l, rand.IntN(4), clients, rounds[:])
	}
	over.Store(true)
	all.Wait()
	t.Logf("%d entries, %d gave up", entered.Load(), gaveUp.Load())
	if entered.Load() < 20 || gaveUp.Load() < 20 {
		t.Errorf("%d entries and %d that gave up: this tests nothing", entered.Load(), gaveUp.Load())
	}
	eventually(t, "nothing is left after everybody has left", func() bool {
		left := false
		o := observe(t, l)
		defer o.Close()
		o.Locks(t.Context(), o.Sessions(t.Context()), server.LockQuery{}, func(same []*server.Lock) bool {
			for _, lock := range same {
				left = left || lock != nil && (lock.Holder != nil || len(lock.Waiters) != 0)
			}
			return !left
		})
		return !left
	})
}

// forget has server i lose its memory, once every user has ended another round, and each
// client has its sessions again: four servers bear one such loss while somebody waits or
// holds.
func forget(t *testing.T, l *server.Local, i, clients int, rounds []atomic.Int32) {
	t.Helper()
	for u := range rounds {
		before := rounds[u].Load()
		eventually(t, "a user ends another round", func() bool { return rounds[u].Load() != before })
	}
	eventually(t, "every server knows every client", func() bool {
		o := observe(t, l)
		defer o.Close()
		for _, a := range o.Sessions(t.Context()) {
			if a.Err != nil || len(a.Status.Sessions) != clients {
				return false
			}
		}
		return true
	})
	if err := errors.Join(l.Stop(i), l.Start(i)); err != nil {
		t.Error(err)
	}
}

func observe(t *testing.T, l *server.Local) *server.Observer {
	t.Helper()
	o, err := server.Observe(server.AskConfig{Servers: l.Servers(), Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}
