//go:build unix && !race

package sim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/verify/workload"
)

// The simulator makes the same run as a textbook implementation of it beside it, and
// needs at most 1/2.5 of the processor time for an event; where delays are drawn,
// which takes both equally long, at most half. Rounds of the two alternate, and the best
// ones are compared: what else the machine does makes rounds longer, and none shorter.
// While that is not enough there are more of them, up to five times as many. The race
// detector would be what is measured: hence the build constraint.
func TestBesideTextbook(t *testing.T) {
	lane.CI.Need(t, "long runs beside a second simulator")
	// Short runs among other tests say less: they are to notice what costs half.
	sizes, events, rounds, enough := []int{10, 50, 200}, 150_000, 5, 0.5
	if lane.Long.Runs() {
		sizes, events, rounds, enough = []int{10, 20, 50, 100, 200}, 1_000_000, 9, 1
	} else {
		t.Logf("SHORTENED to n=%v and %d events, where %v of the ratios is enough: "+
			"TEST_LANE=long makes it 10, 20, 50, 100, 200, 1 million, and all", sizes, events, enough)
	}
	var table strings.Builder
	table.WriteString("| n | delay | events | ns each | of the textbook | times | million a second |\n")
	table.WriteString("|---|---|---|---|---|---|---|\n")
	for _, n := range sizes {
		for _, load := range []struct {
			delay sim.Dist
			least float64
		}{{constant, 2.5}, {exponential, 2}} {
			entries := max(6, events/(2*n*n)) // in the first one all ask at once
			least := enough * load.least
			ours, theirs, handled := besideTextbook(t, n, entries, load.delay, rounds, least)
			ratio := theirs / ours
			fmt.Fprintf(&table, "| %d | %v | %d | %.0f | %.0f | %.1f | %.1f |\n",
				n, load.delay, handled, ours, theirs, ratio, 1e3/ours)
			if ratio < least {
				t.Errorf("n=%d, delay %v: %.1f ns an event, the textbook %.1f: %.2f times, want at least %v",
					n, load.delay, ours, theirs, ratio, least)
			}
		}
	}
	t.Logf("in processor time, the best of %d rounds:\n%s", rounds, &table)
}

// besideTextbook makes a run both ways, several times, and returns the least processor
// time of an event in nanoseconds, and the number of events.
func besideTextbook(
	t *testing.T, n, entries int, delay sim.Dist, rounds int, least float64,
) (ours, theirs float64, handled int64) {
	t.Helper()
	c := saturated(n, entries, delay)
	ours, theirs = math.Inf(1), math.Inf(1)
	for k := 0; k < rounds || theirs/ours < least && k < 5*rounds; k++ {
		var r sim.Result
		var err error
		took := processorTime(t, func() { r, err = sim.NewRunner(ricartagrawala.Algorithm).Run(c) })
		if err != nil {
			t.Fatal(err)
		}
		handled = r.Events - int64(n) // without the starts
		ours = min(ours, float64(took)/float64(handled))

		book := newTextbook(n, entries, delay)
		took = processorTime(t, book.run)
		theirs = min(theirs, float64(took)/float64(book.handled))

		if r.ViolationCount > 0 || book.entries != n*entries || uint64(book.entries) != r.Entries ||
			book.requests != r.MessagesByKind["REQUEST"] || book.replies != r.MessagesByKind["REPLY"] ||
			book.requests != book.entries*(n-1) || book.handled != handled {
			t.Fatalf("n=%d: %d entries, %d requests, %d replies, %d events, but the simulator made %+v",
				n, book.entries, book.requests, book.replies, book.handled, r)
		}
		waited := float64(book.waited) / float64(book.entries) / 1e6
		if delay.Shape == workload.ConstantShape && math.Abs(waited-r.Waiting.Mean) > 1e-6 {
			t.Fatalf("n=%d: not the same run: waited %v ms, and %v", n, waited, r.Waiting.Mean)
		}
	}
	return ours, theirs, handled
}
