package catalog_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/sim"
)

// A thousand processes that all try again at once. The costs of an entry are those of small
// systems, and the table of docs/performance.md says what a run takes.
func TestThousand(t *testing.T) {
	const n = 1000
	entries := 1
	if lane.Long.Runs() {
		entries = 20
	} else {
		t.Log("SHORTENED: TEST_LANE=long lets each process enter 20 times")
	}
	var table strings.Builder
	for _, name := range []string{"ricart-agrawala", "maekawa", "token-ring", "suzuki-kasami"} {
		e := catalog.Find(name, "")
		c := sim.Config{
			Config: protocol.Config{N: n}, Entries: []int{entries}, Think: sim.Constant(0), Hold: sim.Constant(time.Millisecond),
			FIFO: e.Info().FIFO,
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		simulate := e.Simulator()
		r, err := simulate(c)
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(simulate)
		if err != nil || r.ViolationCount != 0 {
			t.Fatal(name, err, r.Violations)
		}
		if r.Entries != uint64(n*entries) {
			t.Errorf("%s: %d entries, want %d", name, r.Entries, n*entries)
		}
		least, most := claimed(e.Info(), c.Config)
		// A run begins with up to one message a process more or less.
		if slack := 1.0 / float64(entries); r.MessagesPerEntry < least-slack || r.MessagesPerEntry > most+slack {
			t.Errorf("%s: %.2f messages an entry, want %g to %g", name, r.MessagesPerEntry, least, most)
		}
		fmt.Fprintf(&table, "| %s | %.5g | %d | %.1f | %.0f | %.0f |\n", name, r.MessagesPerEntry, r.Events, r.EventsPerS/1e6,
			float64(after.HeapAlloc-before.HeapAlloc)/1e6, float64(allocated)/1e6)
	}
	t.Logf("\n| algorithm | messages an entry | events | million a second | MB kept | MB allocated |\n|---|---|---|---|---|---|\n%s", table.String())
}

// claimed is how many messages an entry under load takes by the claims of an algorithm.
func claimed(i protocol.Info, c protocol.Config) (least, most float64) {
	for _, claim := range i.Claims {
		if claim.Load == protocol.HighLoad && claim.Measure == protocol.Messages {
			return claim.Least(c), claim.Most(c)
		}
	}
	return 0, 0
}
