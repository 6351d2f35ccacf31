package memlock

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// withMutex is the lock that a program should take.
type withMutex struct{ sync.Mutex }

func (m *withMutex) Lock(int)   { m.Mutex.Lock() }
func (m *withMutex) Unlock(int) { m.Mutex.Unlock() }

// withSwap is the spin lock of a machine that can compare and swap.
type withSwap struct{ held atomic.Bool }

func (s *withSwap) Lock(int) {
	for !s.held.CompareAndSwap(false, true) {
		runtime.Gosched()
	}
}

func (s *withSwap) Unlock(int) { s.held.Store(false) }

// Benchmark measures one Lock and Unlock: by one goroutine where there are slots for 2 and
// for 8, and by 2 and 8 goroutines that do nothing else. "mutexes" is that time divided by
// the time of sync.Mutex in the same run.
func Benchmark(b *testing.B) {
	for _, load := range []struct{ slots, goroutines int }{{2, 1}, {8, 1}, {2, 2}, {8, 8}} {
		var mutex float64
		for _, k := range []struct {
			name string
			lock lock
		}{
			{"sync.Mutex", &withMutex{}},
			{"compare-and-swap", &withSwap{}},
			{"bakery", NewBakery(load.slots)},
			{"dijkstra", NewDijkstra(load.slots)},
		} {
			b.Run(fmt.Sprintf("%d-of-%d/%s", load.goroutines, load.slots, k.name), func(b *testing.B) {
				var all sync.WaitGroup
				for i := range load.goroutines {
					all.Go(func() {
						for range b.N / load.goroutines {
							k.lock.Lock(i)
							k.lock.Unlock(i)
						}
					})
				}
				all.Wait()
				each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
				if mutex == 0 || k.name == "sync.Mutex" {
					mutex = each
				}
				b.ReportMetric(each/mutex, "mutexes")
			})
		}
	}
}
