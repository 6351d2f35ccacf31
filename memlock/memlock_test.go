package memlock

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Eight goroutines enter at the same time, again and again: never two of them are inside,
// and what is counted there without atomics is right. Under the race detector this also
// says that Unlock happens before the next Lock returns.
func TestExclusion(t *testing.T) {
	const n = 8
	entries := 2000
	if testing.Short() {
		entries = 200
	}
	for name, l := range map[string]lock{"bakery": NewBakery(n), "dijkstra": NewDijkstra(n)} {
		t.Run(name, func(t *testing.T) {
			count := 0
			if most := contend(l, n, entries, func() { count++ }); most != 1 || count != n*entries {
				t.Errorf("%d inside at once, %d entries counted, want 1 and %d", most, count, n*entries)
			}
		})
	}
	if most := contend(open{}, n, entries, func() {}); most < 2 {
		t.Error("a lock that is always open lets in one at a time: this test cannot fail")
	}
}

// open is a lock that excludes nobody.
type open struct{}

func (open) Lock(int)   {}
func (open) Unlock(int) {}

// contend lets n goroutines enter so many times each, and returns how many were inside at
// once at most. Who is inside calls visit, and lets others look.
func contend(l lock, n, entries int, visit func()) int64 {
	var (
		inside, most atomic.Int64
		all          sync.WaitGroup
	)
	for i := range n {
		all.Go(func() {
			for range entries {
				l.Lock(i)
				if now := inside.Add(1); now > most.Load() {
					most.Store(now)
				}
				visit()
				runtime.Gosched()
				inside.Add(-1)
				l.Unlock(i)
			}
		})
	}
	all.Wait()
	return most.Load()
}

// A lock for nobody is refused.
func TestNobody(t *testing.T) {
	for _, f := range []func(){func() { NewBakery(0) }, func() { NewDijkstra(-1) }} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); text != "memlock: a lock for 0 participants: want at least 1" &&
					text != "memlock: a lock for -1 participants: want at least 1" {
					t.Error(text)
				}
			}()
			f()
		}()
	}
}
