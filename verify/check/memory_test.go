package check

import (
	"runtime"
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
)

// What a search says it needs is what the heap holds: no less, or the memory cap
// would not keep its word, and not much more.
func TestMemory(t *testing.T) {
	three := func(c *Config) { c.N, c.Entries = 4, []int{1, 1, 1, 0} }
	holds(t, "states", ricartagrawala.Algorithm, three)
	holds(t, "exact", ricartagrawala.Algorithm, func(c *Config) { three(c); c.Exact = true })
	holds(t, "locals", sigma.Algorithm, func(c *Config) { c.N, c.Clients, c.Suspect = 2, 2, 1 })
}

func holds[M any](t *testing.T, name string, a protocol.Algorithm[M], change func(*Config)) {
	t.Helper()
	c := Config{Workers: 1, Timers: NeverFire}
	change(&c)
	names, err := prepare(protocol.Erase(a), &c)
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	r := newSearcher(crew{newWorkerOf(protocol.Erase(a), c)}, names)
	if err := r.start(NeverFire); err != nil || !r.levels() {
		t.Fatalf("%s: %v", name, err)
	}
	says, takes := r.memory(), heap()-before
	if ratio := float64(says) / float64(takes); ratio < 0.95 || ratio > 1.5 {
		t.Errorf("%s: %d states say that they need %d bytes, and take %d", name, r.store.len(), says, takes)
	}
	runtime.KeepAlive(r)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
