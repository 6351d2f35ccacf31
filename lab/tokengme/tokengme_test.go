package tokengme

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/lab/labtest"
)

// The full scale has the parameters and the ranges of section 4.
func TestRanges(t *testing.T) {
	ranges := map[string][2]int{
		"fig6a": {2, 150}, "fig6b": {0, 4000}, "fig6c": {0, 50}, "fig6d": {0, 50}, "fig6e": {50, 90}, "fig6f": {5, 500},
		"fig7a": {2, 500}, "fig7b": {50, 90},
	}
	for _, f := range figures {
		points := f.pointsOf(lab.Full)
		if got := [2]int{points[0], points[len(points)-1]}; got != ranges[f.name] || len(points) < 7 || !slices.IsSorted(points) {
			t.Errorf("%s: %v, want at least 7 points over %v", f.name, points, ranges[f.name])
		}
		for _, x := range f.pointsOf(lab.Quick) {
			if !slices.Contains(points, x) {
				t.Errorf("%s: quick has a point %d, and full has not", f.name, x)
			}
		}
		for _, p := range f.printed {
			if p.at != anywhere && !slices.Contains(points, p.at) {
				t.Errorf("%s: printed at %d, where nothing is tried", f.name, p.at)
			}
		}
	}
	p := figures[0].at(lab.Full, 50)
	if p.requests != 500 || p.replications < 5 || p.n != 100 || p.ncs != 50 || p.cs != 20 || p.cd != 10 || p.alpha != 20 || p.beta != 80 {
		t.Errorf("parameters %+v", p)
	}
	if n := figures[7].at(lab.Full, 90); n.n != 200 || n.alpha != 10 || n.beta != 90 {
		t.Errorf("7(b): parameters %+v", n)
	}
	c := token.config(p, 3)
	if c.Hold.Mean() != 20*time.Millisecond || c.Think.Mean() != 50*time.Millisecond || c.Delay.Mean() != 10*time.Millisecond {
		t.Errorf("workload %+v", c)
	}
}

// The command is said to take at most 3 hours on two cores, and a tenth of an hour with
// --quick. The replications that are added are not in this.
func TestBudget(t *testing.T) {
	for s, most := range map[lab.Scale]time.Duration{lab.Quick: 6 * time.Minute, lab.Full: 150 * time.Minute} {
		for _, e := range []lab.Experiment{All, Selection} {
			var sum time.Duration
			for _, c := range e.Plan(s).Configurations {
				for _, x := range c.Points {
					sum += c.Cost(x) * time.Duration(c.Replications)
				}
			}
			if sum/2 > most {
				t.Errorf("%s --%s: about %v on two cores, want %v at most", e.Name, s, sum/2, most)
			}
			t.Logf("%s --%s: about %v on two cores", e.Name, s, (sum / 2).Round(time.Second))
		}
	}
}

// smaller is e with the first points of each figure and small systems, at the quick scale.
func smaller(e lab.Experiment) lab.Experiment {
	plan := e.Plan
	e.Plan = func(s lab.Scale) lab.Plan {
		p := plan(s)
		for i := range p.Configurations {
			c := &p.Configurations[i]
			c.Points = slices.DeleteFunc(slices.Clone(c.Points), func(x int) bool { return c.Cost(x) > c.Cost(5)*50 })
			c.Points = c.Points[:min(2, len(c.Points))]
			c.Most, c.Enough = 0, nil
		}
		return p
	}
	return e
}

// With simulations of few processes everything is there, and no run violates anything.
func TestSimulated(t *testing.T) {
	e := smaller(lab.Experiment{Name: "tokengme/fig6f", Plan: func(s lab.Scale) lab.Plan { return plan(s, figures[5]) }})
	r, err := lab.Run(t.Context(), e, lab.Options{Scale: lab.Quick})
	if err != nil {
		t.Fatal(err)
	}
	// What the trials gave is what the table of replications has, so that all follows from that.
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	again, err := lab.Recompute(t.Context(), e, dir)
	if err != nil {
		t.Fatal(err)
	}
	var have, want bytes.Buffer
	if err := errors.Join(again.JSON(&have), r.JSON(&want)); err != nil {
		t.Fatal(err)
	}
	if _, want, _ := strings.Cut(want.String(), `"tables"`); !strings.HasSuffix(have.String(), want) {
		t.Error("the report that follows from the replications is another one")
	}
	ratios := table(t, r, "ratios")
	found := 0
	for _, row := range ratios.Rows {
		if row[4] == size && row[1] == 5 {
			found++
			if v := row[6].(float64); v < 1 {
				t.Errorf("messages of TokenGME have %.2f of the size of those of RA2 with five processes, want more than 1: %v", v, row)
			}
		}
	}
	if found == 0 {
		t.Error("sizes are not there")
	}
}

// docs/experiments.md describes each column of each table.
func TestDocs(t *testing.T) {
	for _, e := range []lab.Experiment{All, Selection} {
		labtest.Documented(t, e, inWorld(t, e, printedWorld).Tables...)
	}
}
