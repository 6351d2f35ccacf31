package statistics

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/lab/labtest"
)

// Intervals cover the truth as often as they say, and two mistakes are found.
func TestCoverage(t *testing.T) {
	scale := lab.Default
	if !lane.Long.Runs() {
		scale = lab.Quick
		t.Log("SHORTENED: 400 seeds; TEST_LANE=long tries 2000")
	}
	r, err := lab.Run(t.Context(), Coverage, lab.Options{Scale: scale})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdicts[lab.Within] != 4 || r.Verdicts[lab.Violated] != 2 || r.Differs() > 0 {
		var b strings.Builder
		if err := r.Text(&b); err != nil {
			t.Fatal(err)
		}
		t.Error(b.String())
	}
}

// Pollaczek and Khinchine: with load 0.5 customers wait 1 and 0.5 on average.
func TestQueue(t *testing.T) {
	for _, q := range []queue{{0.5, false}, {0.5, true}, {0.8, true}} {
		if got := q.run(1, 1000, 3_000_000); math.Abs(got/q.wait()-1) > 0.02 {
			t.Errorf("%+v: wait %.3f, want %.3f", q, got, q.wait())
		}
	}
	if w := (queue{0.5, false}).wait(); w != 1 {
		t.Errorf("theory says %g, want 1", w)
	}
}

// A sequential run stops at the first size at which it is precise, whatever the number of
// workers, and both queues have the same seeds.
func TestSequential(t *testing.T) {
	f := forms[2].form
	var counts []float64
	for seed := range uint64(20) {
		s, err := f.intervals(context.Background(), 5, seed)
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, s.Values[made])
		if n := s.Values[made]; n < float64(f.most) && s.Values[width] > precision {
			t.Errorf("seed %d: stopped after %g replications at a half width of %.3f", seed, n, s.Values[width])
		}
	}
	least, most := counts[0], counts[0]
	for _, n := range counts {
		least, most = min(least, n), max(most, n)
	}
	if least == most {
		t.Errorf("all made %g replications: none stopped by what it saw", least)
	}
}

// docs/experiments.md describes each column.
func TestDocs(t *testing.T) {
	labtest.Documented(t, Coverage, reportCoverage(&lab.Results{}).Tables[0])
}
