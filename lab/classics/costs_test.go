package classics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/lab/labtest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/sim"
)

// few runs an experiment at the first points of each configuration only.
func few(t *testing.T, e lab.Experiment, points int) lab.Report {
	t.Helper()
	plan := e.Plan
	e.Plan = func(s lab.Scale) lab.Plan {
		p := plan(s)
		for i := range p.Configurations {
			c := &p.Configurations[i]
			c.Points = c.Points[:min(points, len(c.Points))]
		}
		return p
	}
	r, err := lab.Run(t.Context(), e, lab.Options{Scale: lab.Quick})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each formula is met, and what is exact is met exactly: every claim of each algorithm at
// low load that is one number.
func TestCosts(t *testing.T) {
	r := few(t, Costs, 2)
	if r.Differs() > 0 {
		var b strings.Builder
		if err := r.Text(&b); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s\n%s", r.Summary(), b.String())
	}
	exact := 0
	for _, e := range catalog.All {
		i := e.Info()
		if i.Users == protocol.Nobody || i.Elector || i.Grouped || i.Weak {
			continue
		}
		for _, claim := range i.Claims {
			c := protocol.Config{N: 3}
			if claim.Load == protocol.LowLoad && claim.Least(c) == claim.Most(c) {
				exact++
			}
		}
	}
	if r.Verdicts[lab.Equal] < 2*exact {
		t.Errorf("%d measures are equal to their formulas, want %d at low load alone", r.Verdicts[lab.Equal], 2*exact)
	}
	labtest.Documented(t, Costs, r.Tables[0])
	for _, table := range r.Tables {
		if table.Name == "contention" {
			ascend(t, table)
		}
	}
}

// ascend fails unless Sigma costs more than Maekawa's algorithm at seven members, and more
// still as published.
func ascend(t *testing.T, contention lab.Table) {
	t.Helper()
	var forms []string
	least := 0.0
	for _, row := range contention.Rows {
		if row[0] != 7 {
			continue
		}
		forms = append(forms, fmt.Sprint(row[1], " ", row[2]))
		if row[3].(float64) <= least {
			t.Errorf("%v: %v messages, want more than %v", forms, row[3], least)
		}
		least = row[3].(float64)
	}
	if want := []string{"maekawa ", "sigma ", "sigma literal"}; !slices.Equal(forms, want) {
		t.Errorf("under contention there are %q, want %q", forms, want)
	}
}

// liar claims one message too few.
type liar struct{ catalog.Entry }

func (l liar) Info() protocol.Info {
	i := l.Entry.Info()
	i.Claims = []protocol.Claim{
		protocol.Exactly(protocol.LowLoad, protocol.Messages, protocol.Linear(2, -3), "2(N-1)-1"),
		protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(2), "2"),
	}
	return i
}

// A claim that is wrong by one message differs.
func TestCostsDiffer(t *testing.T) {
	e := lab.Experiment{Name: "classics/liar", Plan: func(lab.Scale) lab.Plan {
		return lab.Plan{
			Sweep: "N", Labels: []string{"algorithm", "variant", "load"}, Measures: measures,
			Configurations: []lab.Configuration{
				load{liar{catalog.Find("ricart-agrawala", "")}, low}.configuration([]int{3, 5}),
			},
			Report: reportCosts,
		}
	}}
	r := few(t, e, 2)
	if r.Verdicts[lab.Differs] != 2 || r.Verdicts[lab.Equal] != 2 {
		t.Errorf("verdicts: %s, want 2 equal and 2 that differ", r.Summary())
	}
}

// double lets two in.
type double struct{ catalog.Entry }

func (double) Simulate(sim.Config) (sim.Result, error) {
	return sim.Result{ViolationCount: 1, Violations: []string{"two are inside"}}, nil
}

// What a run costs that violates a property means nothing.
func TestCostsOfViolation(t *testing.T) {
	_, err := simulate(double{catalog.All[0]}, sim.Config{})
	if err == nil || !strings.Contains(err.Error(), "two are inside") {
		t.Errorf("error %v", err)
	}
}

func TestRanges(t *testing.T) {
	if got := ranges([]int{3, 4, 5, 7, 9, 10}); got != "3-5, 7, 9-10" {
		t.Errorf("got %q", got)
	}
}
