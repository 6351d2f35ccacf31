package shrinkmap_test

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/poundlock/poundlock/internal/shrinkmap"
)

// A Map does what a map does, in loops that change it too.
func TestMap(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	var m shrinkmap.Map[int, int]
	want := map[int]int{}
	for step := range 20_000 {
		k := random.IntN(1 + 1000*(step%4000)/4000) // many, and then few again
		if random.IntN(3) == 0 {
			m.Set(k, step)
			want[k] = step
		} else {
			m.Delete(k)
			delete(want, k)
		}
		v, ok := want[k]
		if m.Len() != len(want) || m.Get(k) != v || m.Has(k) != ok {
			t.Fatalf("seed %d, step %d: %d elements and %d for %d, want %d and %d",
				seed, step, m.Len(), m.Get(k), k, len(want), v)
		}
	}
	if got := maps.Collect(m.All()); !maps.Equal(got, want) {
		t.Errorf("seed %d: %v, want %v", seed, got, want)
	}
}

// What a loop deletes does not come, even when the map is rebuilt meanwhile; what it
// leaves comes once.
func TestDeleteInLoop(t *testing.T) {
	var m shrinkmap.Map[int, int]
	for k := range 10_000 {
		m.Set(k, k)
	}
	seen := map[int]bool{}
	for k := range m.All() {
		if seen[k] || !m.Has(k) {
			t.Fatalf("%d comes again, or although it is deleted", k)
		}
		seen[k] = true
		for j := range 10_000 {
			if j%100 != 0 {
				m.Delete(j)
			}
		}
	}
	for k := 0; k < 10_000; k += 100 {
		if !seen[k] {
			t.Errorf("%d does not come", k)
		}
	}
}

// The memory of a Map that was large is given back; that of a map is not, which shows
// that the test can tell.
func TestMemory(t *testing.T) {
	const most, left = 200_000, 1000
	var m shrinkmap.Map[int, int]
	plain := map[int]int{}
	before := heap()
	for k := range most {
		m.Set(k, k)
	}
	for k := left; k < most; k++ {
		m.Delete(k)
	}
	size := heap() - before
	before = heap()
	for k := range most {
		plain[k] = k
	}
	for k := left; k < most; k++ {
		delete(plain, k)
	}
	sizePlain := heap() - before
	runtime.KeepAlive(plain)
	if m.Len() != left || size > 100*left {
		t.Errorf("%d bytes for %d elements", size, m.Len())
	}
	if sizePlain < 10*size {
		t.Errorf("a map has %d bytes, ours %d: ours is needed no more", sizePlain, size)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
