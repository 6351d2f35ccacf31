package poundlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/lane"
)

// crowd lets eight users of four clients, each with its number of permits, in and
// out of one semaphore for a while, in which one server forgets: more might be too
// many for one wait on a busy machine. The while lasts until as many as may were inside
// at once, and everybody was. It returns how many were inside at once and how often each
// user was.
func crowd(t *testing.T, permits [8]int) (most int32, entries [8]int32) {
	t.Helper()
	l, config := startLocal(t)
	var inside, peak atomic.Int32
	var entered [8]atomic.Int32
	var all sync.WaitGroup
	var over atomic.Bool
	var c *poundlock.Client
	for i, n := range permits {
		if i%2 == 0 {
			c = dial(t, config)
		}
		s := c.Semaphore("crowd", n)
		all.Go(func() {
			for !over.Load() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				g, err := s.Acquire(ctx)
				cancel()
				if err != nil {
					t.Errorf("user %d: %v", i, err)
					return
				}
				entered[i].Add(1)
				k := inside.Add(1)
				for p := peak.Load(); k > p && !peak.CompareAndSwap(p, k); p = peak.Load() {
				}
				time.Sleep(5 * time.Millisecond)
				inside.Add(-1)
				if err := g.Unlock(); err != nil {
					t.Errorf("user %d: %v", i, err)
				}
			}
		})
	}
	time.Sleep(500 * time.Millisecond)
	if err := errors.Join(l.Stop(0), l.Start(0)); err != nil {
		t.Error(err)
	}
	time.Sleep(time.Second)
	enough := func() bool {
		for i := range entered {
			entries[i] = entered[i].Load()
		}
		return peak.Load() >= int32(slices.Max(permits[:])) && !slices.Contains(entries[:], 0)
	}
	for end := time.Now().Add(patience); !enough() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	over.Store(true)
	all.Wait()
	enough() // counts
	return peak.Load(), entries
}

// TestSemaphoreOfThree: of eight users never four are inside, and all get in.
func TestSemaphoreOfThree(t *testing.T) {
	t.Parallel()
	most, entries := crowd(t, [8]int{3, 3, 3, 3, 3, 3, 3, 3})
	if most != 3 {
		t.Errorf("%d were inside at once", most)
	}
	for i, k := range entries {
		if k == 0 {
			t.Errorf("user %d never got in: %v", i, entries)
		}
	}
	t.Logf("entries %v", entries)
	if !lane.CI.Adds(t, "the test sees it when one too many is let in") {
		return
	}
	if most, _ = crowd(t, [8]int{3, 3, 3, 3, 4, 4, 4, 4}); most != 4 {
		t.Errorf("with a permit more for some, %d were inside at once", most)
	}
}

// TestOppositeOrders: users that name three locks in all orders never wait for each
// other in a circle, and are alone with each of them.
func TestOppositeOrders(t *testing.T) {
	t.Parallel()
	_, config := startLocal(t)
	var inside [3]atomic.Int32
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	names := []string{"a", "b", "c"}
	for i := range 6 {
		first, second := i%3, (i+1+i/3)%3
		m := dial(t, config).Locks(names[first], names[second])
		all.Go(func() {
			for range 20 {
				err := m.Do(ctx, func(ctx context.Context, g *poundlock.Grant) error {
					for _, k := range []int{first, second} {
						if inside[k].Add(1) != 1 {
							t.Errorf("two are inside of %s", names[k])
						}
						defer inside[k].Add(-1)
					}
					time.Sleep(100 * time.Microsecond)
					return ctx.Err()
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestOverdue: what one holds for too long the next client gets though it is never
// unlocked, and not before its context has ended.
func TestOverdue(t *testing.T) {
	t.Parallel()
	_, config := startLocal(t)
	second := dial(t, config)
	config.MaxHold, config.Grace = 200*time.Millisecond, 100*time.Millisecond
	g, err := dial(t, config).Locks("a", "b").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	next, err := second.Locks("a", "b").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if cause := context.Cause(g.Context()); !errors.Is(cause, poundlock.ErrMaxHold) || !errors.Is(cause, poundlock.ErrLost) {
		t.Errorf("the next one is inside, and the context of the first one has the cause %v", cause)
	}
	if err := g.Unlock(); !errors.Is(err, poundlock.ErrMaxHold) {
		t.Errorf("a late Unlock: %v", err)
	}
	if err := next.Context().Err(); err != nil {
		t.Errorf("the late Unlock ended what the next one has: %v", err)
	}
	if err := next.Unlock(); err != nil {
		t.Error(err)
	}
}

// TestElection: who campaigns leads one after the other, with growing tokens, and
// those who watch see who it is, under the label that it has.
func TestElection(t *testing.T) {
	t.Parallel()
	l, config := startLocal(t)
	quick := config
	quick.Lease = time.Second // so that it looks every tenth of a second
	watcher := dial(t, quick)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	observe, stop := context.WithCancel(ctx)
	var mu sync.Mutex
	var seen []string
	sees := func(id string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(seen) > 0 && seen[len(seen)-1] == id
		}
	}
	var done sync.WaitGroup
	done.Go(func() {
		for leader, err := range watcher.Election("e").Observe(observe) {
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			if len(seen) == 0 || seen[len(seen)-1] != leader.ID {
				seen = append(seen, leader.ID)
			}
			mu.Unlock()
		}
	})
	var last uint64
	var ids []string
	for _, label := range []string{"first", "second"} {
		config.Label = label
		c := dial(t, config)
		ids = append(ids, c.ID())
		led, err := c.Election("e").Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if led.Token() <= last || led.Context().Err() != nil || !led.LeaseEnd().After(time.Now()) {
			t.Errorf("%s: token %d after %d, %v, until %v", label, led.Token(), last, led.Context().Err(), led.LeaseEnd())
		}
		last = led.Token()
		// One server that forgets changes nothing.
		if err := errors.Join(l.Stop(0), l.Start(0)); err != nil {
			t.Fatal(err)
		}
		leader, err := watcher.Election("e").Leader(ctx)
		if err != nil || leader.ID != c.ID() || leader.Label != label || leader.Token != 0 && leader.Token != last {
			t.Errorf("the leader is %+v, %v: want %s, %s", leader, err, c.ID(), label)
		}
		eventually(t, "the watcher sees it", sees(c.ID()))
		if err := led.Resign(); err != nil {
			t.Error(err)
		}
		if err := led.Resign(); !errors.Is(err, poundlock.ErrUnlocked) {
			t.Errorf("resigned twice: %v", err)
		}
	}
	eventually(t, "the watcher sees nobody", sees(""))
	if leader, err := watcher.Election("e").Leader(ctx); err != nil || leader != (poundlock.Leader{}) {
		t.Errorf("the leader is %+v, %v: want nobody", leader, err)
	}
	stop()
	done.Wait()
	if len(seen) < 3 || seen[len(seen)-1] != "" {
		t.Errorf("seen %q", seen)
	}
	var leaders []string
	for _, id := range seen {
		if id != "" {
			leaders = append(leaders, id)
		}
	}
	if len(leaders) != 2 || leaders[0] != ids[0] || leaders[1] != ids[1] {
		t.Errorf("seen %q, want %q", seen, ids)
	}
}

// TestStormOfSeveral: users of several names at once that mostly wait for too short a
// time, some of whom hold until their time is over, while one server after the other
// forgets. Nobody meets inside whom it does not share with, tokens grow name by name, and all is free in
// the end.
func TestStormOfSeveral(t *testing.T) {
	t.Parallel()
	l, config := startLocal(t)
	config.MaxHold, config.Grace = 3*time.Millisecond, 10*time.Second
	names := []string{"a", "b", "c"}
	var over atomic.Bool
	groups := []string{"", "", "r", "r", "q"}
	var rooms [3]room
	var entered, gaveUp, overdue atomic.Int32
	var all sync.WaitGroup
	visit := func(g *poundlock.Grant) {
		entered.Add(1)
		for i, name := range g.Names() {
			r := &rooms[name[0]-'a']
			r.enter(t, g.Group(), g.Tokens()[i])
			defer r.leave()
		}
		if rand.IntN(4) == 0 {
			<-g.Context().Done() // and it leaves within the grace
		}
	}
	const clients, users = 3, 3
	var rounds [clients * users]atomic.Int32
	for k := range clients {
		c := dial(t, config)
		for u := range users {
			all.Go(func() {
				for ; !over.Load(); rounds[k*users+u].Add(1) {
					var some []string
					for _, i := range rand.Perm(3)[:1+rand.IntN(3)] {
						some = append(some, names[i])
					}
					m := c.Locks(some...).In(groups[rand.IntN(len(groups))])
					lock := m.Lock
					if rand.IntN(4) == 0 {
						lock = m.TryLock
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(1<<(16+rand.IntN(11)))))
					g, err := lock(ctx)
					cancel()
					if err != nil {
						gaveUp.Add(1)
						if !errors.Is(err, poundlock.ErrNotAcquired) {
							t.Error(err)
						}
						continue
					}
					visit(g)
					if err := g.Unlock(); errors.Is(err, poundlock.ErrMaxHold) {
						overdue.Add(1)
					} else if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	enough := func() bool { return entered.Load() >= 50 && overdue.Load() >= 10 && gaveUp.Load() >= 50 }
	for i, end := 0, time.Now().Add(patience); i < 3 || !enough() && time.Now().Before(end); i++ {
		time.Sleep(300 * time.Millisecond)
		forget(t, l, i%4, clients, rounds[:])
	}
	over.Store(true)
	all.Wait()
	t.Logf("%d entries, %d of them overdue, %d gave up", entered.Load(), overdue.Load(), gaveUp.Load())
	if !enough() {
		t.Error("this tests nothing")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g, err := dial(t, config).Locks(names...).Lock(ctx)
	if err != nil {
		t.Fatalf("after everybody has left: %v", err)
	}
	g.Unlock()
}
