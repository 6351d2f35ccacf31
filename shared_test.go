package poundlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/fence"
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

// TestRooms: whoever wants any of two rooms gets the one that it prefers where nobody is, and is at once in the one
// where others are.
func TestRooms(t *testing.T) {
	t.Parallel()
	_, config := startLocal(t)
	a, b := dial(t, config), dial(t, config)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	entered := func(want string) func(*poundlock.Grant, error) *poundlock.Grant {
		return func(g *poundlock.Grant, err error) *poundlock.Grant {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			if g.Group() != want {
				t.Errorf("in group %q, want %q", g.Group(), want)
			}
			return g
		}
	}
	for _, first := range []string{"red", "blue"} {
		var grants []*poundlock.Grant
		// Lock, because the servers may not have heard of the last round's end yet.
		grants = append(grants, entered(first)(a.Groups("room").Lock(ctx, first, "green")))
		grants = append(grants, entered(first)(b.Groups("room").TryLock(ctx, "blue", "red", "yellow")))
		if g, err := b.Groups("room").TryLock(ctx, "green", "yellow"); !errors.Is(err, poundlock.ErrNotAcquired) {
			t.Fatalf("beside them: %v, %v", g, err)
		}
		for _, g := range grants {
			if err := g.Unlock(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestWritersAmongReaders: 64 goroutines of one client overlap for ever, a writer of the same client and one of another
// client come again and again, alone and at once, and each gets in before the readers begin a fourth session after it came.
func TestWritersAmongReaders(t *testing.T) {
	t.Parallel()
	_, config := startLocal(t)
	here, there := dial(t, config), dial(t, config)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var mu sync.Mutex
	sessions := map[uint64]bool{} // of readers, by token
	inside, most := 0, 0
	begun := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(sessions)
	}
	var over atomic.Bool
	var readers sync.WaitGroup
	ready := make(chan struct{}, 64)
	for range cap(ready) {
		readers.Go(func() {
			for first := true; !over.Load(); first = false {
				g, err := here.RWMutex("book").RLock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				sessions[g.Token()] = true
				inside++
				most = max(most, inside)
				mu.Unlock()
				if first {
					ready <- struct{}{}
				}
				time.Sleep(rand.N(4 * time.Millisecond))
				mu.Lock()
				inside--
				mu.Unlock()
				if err := g.Unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range cap(ready) {
		<-ready
	}
	clients := map[string]*poundlock.Client{"here": here, "there": there}
	for round := range 12 {
		before := begun()
		var writers sync.WaitGroup
		for _, where := range [][]string{{"here"}, {"there"}, {"here", "there"}}[round%3] {
			writers.Go(func() {
				g, err := clients[where].RWMutex("book").Lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if k := begun() - before; k > 3 {
					t.Errorf("round %d: readers began %d sessions before the writer %s", round, k, where)
				}
				mu.Lock()
				if inside != 0 {
					t.Errorf("%d readers are inside beside the writer %s", inside, where)
				}
				mu.Unlock()
				if err := g.Unlock(); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
	}
	over.Store(true)
	readers.Wait()
	t.Logf("%d sessions, up to %d readers inside", begun(), most)
	if most < 2 {
		t.Error("no two readers were inside together")
	}
}

// TestKeptLock: a client that keeps a lock enters it again without a message, whether it is alone or shares it, and gives it up
// as soon as another client waits. Tokens rise over both.
func TestKeptLock(t *testing.T) {
	t.Parallel()
	_, config := startLocal(t)
	a, b := dial(t, config), dial(t, config)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	enter := func(lock func(context.Context) (*poundlock.Grant, error)) uint64 {
		g, err := lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Unlock()
		return g.Token()
	}
	sent := func() (bytes uint64) {
		for _, s := range a.Stats().Servers {
			bytes += s.BytesSent
		}
		return bytes
	}
	for name, lock := range map[string]func(context.Context) (*poundlock.Grant, error){
		"alone":  a.Mutex("alone").Keep(time.Minute).Lock,
		"shared": a.RWMutex("shared").Keep(time.Minute).RLock,
	} {
		last := enter(lock)
		before := sent()
		const entries = 1000
		for range entries {
			token := enter(lock)
			if token < last || name == "alone" && token == last {
				t.Fatalf("%s: token %d after %d", name, token, last)
			}
			last = token
		}
		if bytes := sent() - before; bytes > entries {
			t.Errorf("%s: %d bytes were sent for %d entries: a message each?", name, bytes, entries)
		}
		for _, other := range []func(context.Context) (*poundlock.Grant, error){b.Mutex(name).Lock, lock, b.Mutex(name).Lock} {
			token := enter(other)
			if token <= last {
				t.Errorf("%s: another client has token %d after %d", name, token, last)
			}
			last = token
		}
	}
	// A grant of a lock that was kept comes down to a group with its token: those beside it do not have a smaller one, and the client
	// keeps the group.
	kept := a.RWMutex("kept").Keep(time.Minute)
	enter(kept.Lock)
	g, err := kept.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Downgrade(poundlock.Shared); err != nil || g.Group() != poundlock.Shared {
		t.Errorf("group %q, %v", g.Group(), err)
	}
	var c fence.Checker
	for name, token := range map[string]uint64{
		"the grant": g.Token(), "a goroutine": enter(kept.RLock), "another client": enter(b.RWMutex("kept").RLock),
	} {
		if err := errors.Join(c.Check("kept", g.Token()), c.CheckGroup("kept", poundlock.Shared, token)); err != nil {
			t.Errorf("%s has token %d beside %d: %v", name, token, g.Token(), err)
		}
		c = fence.Checker{}
	}
	if _, err := b.Mutex("kept").TryLock(ctx); !errors.Is(err, poundlock.ErrNotAcquired) {
		t.Errorf("alone beside readers: %v", err)
	}
	if err := g.Unlock(); err != nil {
		t.Error(err)
	}
	before := sent()
	for range 1000 {
		enter(kept.RLock)
	}
	if bytes := sent() - before; bytes > 1000 {
		t.Errorf("the group is not kept: %d bytes were sent", bytes)
	}
	enter(b.Mutex("kept").Lock)
	if s := a.Stats(); s.SlowTokens > 6 || s.Losses > 0 { // of servers that have just started the first ones are slow
		t.Errorf("%d slow tokens, %d losses", s.SlowTokens, s.Losses)
	}
}
