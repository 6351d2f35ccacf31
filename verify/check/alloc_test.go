package check

import (
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
)

// A search allocates for what it interns, and for tables that grow by half: nothing
// for a state. A second search in the same space has nothing left to intern.
func TestAllocations(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"fingerprints": func(*Config) {},
		"exact":        func(c *Config) { c.Exact = true },
		"FIFO":         func(c *Config) { c.FIFO = true },
		"endless":      func(c *Config) { c.Entries = []int{Unlimited, Unlimited, 1, 0} },
	} {
		a, c := ricartagrawala.Algorithm, Config{Config: protocol.Config{N: 4}, Entries: []int{1, 1, 1, 0}}
		change(&c)
		names, err := prepare(protocol.Erase(a), &c)
		if err != nil {
			t.Fatal(err)
		}
		all := crew{newWorkerOf(protocol.Erase(a), c)}
		var v Verdict
		n := testing.AllocsPerRun(1, func() {
			if v, err = search(all, names, AnyMoment); err != nil || v.Verdict != Holds {
				t.Fatalf("%s: %+v, %v", name, v, err)
			}
		})
		if n > float64(v.States)/10 {
			t.Errorf("%s: %.0f allocations for %d states and %d transitions", name, n, v.States, v.Transitions)
		}
	}
}
