package classics

import (
	"testing"

	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/lab/labtest"
)

// Each kind of message is met exactly.
func TestElections(t *testing.T) {
	r := few(t, Elections, 3)
	want := 3 * (3*(3+1) + 4*(2+1)) // sizes; of each case its kinds and their sum
	if r.Verdicts[lab.Equal] != want || len(r.Verdicts) != 1 {
		t.Errorf("verdicts: %s, want %d equal", r.Summary(), want)
	}
	labtest.Documented(t, Elections, r.Tables[0])
}

// A formula that is wrong by one differs, and so does the sum.
func TestElectionsDiffer(t *testing.T) {
	e := ways()[0]
	e.counts[2].of = func(n int) int { return n - 1 }
	s, err := e.elect(t.Context(), 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := lab.Cell{Configuration: &lab.Configuration{Expect: e.expect}, Point: 5, Samples: []lab.Sample{s}}
	got := map[lab.Verdict]int{}
	for _, x := range e.expect(5) {
		got[x.Verdict(c.Values(x.Measure))]++
	}
	if got[lab.Equal] != 2 || got[lab.Differs] != 2 || c.Verdict() != lab.Differs {
		t.Errorf("verdicts %v, want 2 equal and 2 that differ", got)
	}
}
