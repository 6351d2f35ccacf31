package catalog_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/check"
)

// Some models of every algorithm of the catalog: verdicts of all kinds. Without full they have
// some ten thousand states, of group algorithms too.
func models(e catalog.Entry, full bool) map[string]check.Config {
	small := func(n int, change ...func(*check.Config)) check.Config {
		c := check.Config{Config: protocol.Config{N: n}, MaxMemory: 256 << 20}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	fifo := func(c *check.Config) { c.FIFO = true }
	quiet := func(c *check.Config) { c.Timers = check.NeverFire }
	if e.Info().Users == protocol.Members {
		twice := func(c *check.Config) { c.Entries = []int{2, 1, 1} }
		all := map[string]check.Config{
			"three": small(3), "three, twice": small(3, twice), "two, endless": small(2, func(c *check.Config) {
				c.Entries = []int{check.Unlimited}
			}),
		}
		if !e.Info().FIFO {
			all["three, fifo"] = small(3, fifo)
		}
		if strings.HasSuffix(e.Info().Variant, "recovery") {
			return map[string]check.Config{"two, twice": small(2, func(c *check.Config) { c.Entries = []int{2, 1} }), "two, fifo": small(2, fifo)}
		}
		if e.Info().Consensus {
			return map[string]check.Config{"two, a suspicion": small(2, func(c *check.Config) { c.Suspect = 1 })}
		}
		if e.Info().Weak { // with a suspicion they have millions
			return map[string]check.Config{"two": small(2)}
		}
		switch name := e.Info().Name; { // hundreds of thousands of states, where ten thousand do
		case name == "bakery-messages":
			delete(all, "three")
			fallthrough
		case name == "lamport", !full && e.Info().Grouped:
			delete(all, "three, twice")
			all["two, twice"] = small(2, func(c *check.Config) { c.Entries = []int{2, 1} })
		}
		if !full {
			fewer(e.Info(), all)
		}
		return all
	}
	all := map[string]check.Config{
		"suspicion":  small(2, quiet, func(c *check.Config) { c.Suspect = 1 }),
		"crash":      small(2, quiet, func(c *check.Config) { c.Crash = 1 }),
		"give up":    small(2, quiet, fifo, func(c *check.Config) { c.Cancel = 1 }),
		"all timers": small(2, func(c *check.Config) { c.Clients = 1 }),
	}
	if v := e.Info().Variant; v != "" && v != "memory" { // these take more than five times as many states to lose exclusion
		all["one lost"] = small(3, quiet, func(c *check.Config) { c.Amnesia = 1 })
	}
	return all
}

// fewer replaces models of more than some ten thousand states, which take minutes with the race detector.
func fewer(i protocol.Info, all map[string]check.Config) {
	rests := func(names ...string) {
		for _, name := range names {
			if c, ok := all[name]; ok {
				delete(all, name)
				c.Entries = []int{2, 1, 0}
				all[name+", one rests"] = c
			}
		}
	}
	switch {
	case i.Variant == "bounded":
		delete(all, "two, endless")
		rests("three")
	case i.Variant == "several":
		rests("three")
	case i.Variant == "first-come":
		rests("three, twice")
	case i.Name == "bakery-messages", i.Variant == "unordered":
		rests("three, fifo")
	case i.Name == "lamport", i.Name == "ra2":
		rests("three")
	}
}

// A search takes the same way whatever the number of workers, and finds the same
// states whether it compares them whole or by fingerprint.
func TestWorkers(t *testing.T) {
	lane.CI.Need(t, "all algorithms with one worker and with several")
	full := lane.Long.Runs()
	if !full {
		t.Log("SHORTENED: TEST_LANE=long compares models with up to a million states, too")
	}
	workers := []func(*check.Config){
		func(c *check.Config) { c.Workers = 1 },
		func(c *check.Config) { c.Workers, c.Exact = 3, true },
		func(c *check.Config) { c.Workers = 2 },
		func(c *check.Config) { c.Workers = 4 },
	}
	results := map[check.Result]bool{}
	for _, e := range catalog.All {
		for name, c := range models(e, full) {
			var first check.Verdict
			for k, change := range workers {
				c := c
				change(&c)
				v, err := e.Check(c)
				if err != nil {
					if k > 0 {
						t.Errorf("%s %s, %s: %v", e.Info().Name, e.Info().Variant, name, err)
					}
					break // its model has no such fault
				}
				v.Seconds, v.StatesPerS = 0, 0
				if c.Exact {
					v.Bounds = first.Bounds
				}
				if k == 0 {
					first = v
					results[v.Verdict] = true
				} else if !reflect.DeepEqual(v, first) {
					t.Errorf("%s %s, %s: %d workers, exact %v:\n%+v\nwith one worker:\n%+v",
						e.Info().Name, e.Info().Variant, name, c.Workers, c.Exact, v, first)
				}
			}
		}
	}
	if want := fmt.Sprint(map[check.Result]bool{check.Holds: true, check.Violated: true}); fmt.Sprint(results) != want {
		t.Errorf("verdicts %v, want %s", results, want)
	}
}
