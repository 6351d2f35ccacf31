package tokengme

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/lab"
)

// printedWorld has the ratios that the text prints, and between them what it says of trends.
func printedWorld(f figure, measure string, x int) float64 {
	last := float64(f.points[len(f.points)-1])
	part := (float64(x) - float64(f.points[0])) / (last - float64(f.points[0]))
	between := func(first, last float64) float64 { return first + part*(last-first) }
	switch f.name + " " + measure {
	case "fig6a waiting", "fig6a throughput":
		if x == 2 {
			return map[string]float64{waiting: 1 / 0.9, throughput: 1 / 1.05}[measure]
		}
		return map[string]float64{waiting: 0.8, throughput: 1.1}[measure]
	case "fig6b waiting":
		return between(0.9, 0.5)
	case "fig6b throughput":
		return between(1.1, 1)
	case "fig6b messages":
		return between(0.99, 0.55)
	case "fig6c waiting":
		return between(0.65, 0.85)
	case "fig6c throughput":
		return between(1.39, 1.1)
	case "fig6d waiting":
		return between(0.95, 0.7)
	case "fig6d throughput":
		return between(1.02, 1.3)
	case "fig6e waiting":
		return between(0.7, 0.9)
	case "fig6e throughput":
		return between(1.2, 1.05)
	case "fig6f waiting":
		return between(0.95, 0.7)
	case "fig6f throughput":
		return between(1.02, 1.3)
	case "fig6f size":
		switch x {
		case 5:
			return 2.22
		case 500:
			return 0.01
		}
	case "fig7a waiting":
		return between(1, 0.76)
	case "fig7a throughput":
		return between(1, 1.22)
	case "fig7b waiting":
		return between(1, 0.82)
	case "fig7b throughput":
		return between(1, 1.14)
	}
	return map[string]float64{messages: 0.95, size: 0.05}[measure]
}

// inWorld runs e at the full scale, with ratios of a world in place of simulations.
func inWorld(t *testing.T, e lab.Experiment, world func(f figure, measure string, x int) float64) lab.Report {
	t.Helper()
	plan := e.Plan
	e.Plan = func(s lab.Scale) lab.Plan {
		p := plan(s)
		for i := range p.Configurations {
			c := &p.Configurations[i]
			f := figures[slices.IndexFunc(figures, func(f figure) bool { return f.name == c.Labels[0] })]
			c.Try = func(_ context.Context, x int, seed uint64) (lab.Sample, error) {
				chance := 1 + 0.1*rand.New(rand.NewPCG(seed, uint64(x))).Float64() // common to all forms
				values := map[string]float64{}
				for _, m := range []string{messages, size, waiting, throughput} {
					values[m] = chance
					if strings.HasPrefix(c.Labels[1], token.name) && c.Labels[1] != fifo.name {
						values[m] *= world(f, m, x)
					}
				}
				values[throughput90] = values[throughput]
				return lab.Sample{Values: values}, nil
			}
		}
		return p
	}
	r, err := lab.Run(t.Context(), e, lab.Options{Scale: lab.Full})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Where the printed values are the truth, each claim is reproduced; where the truth is the
// other way round, hardly any is.
func TestClaims(t *testing.T) {
	r := inWorld(t, All, printedWorld)
	if r.Verdicts[lab.Reproduced] != len(claims) || len(r.Verdicts) != 1 {
		t.Errorf("as printed: %s, want %d reproduced\n%s", r.Summary(), len(claims), text(t, r))
	}
	r = inWorld(t, All, func(f figure, measure string, x int) float64 { return 1 / printedWorld(f, measure, x) })
	if r.Verdicts[lab.NotReproduced] < len(claims)-5 {
		t.Errorf("the other way round: %s\n%s", r.Summary(), text(t, r))
	}
	half := func(f figure, measure string, x int) float64 { return (1 + printedWorld(f, measure, x)) / 2 }
	r = inWorld(t, All, half)
	if r.Verdicts[lab.Partly] < 8 {
		t.Errorf("half as far from 1: %s\n%s", r.Summary(), text(t, r))
	}
}

func text(t *testing.T, r lab.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Each claim is in the table of exactly those experiments that have its figures.
func TestEachFigure(t *testing.T) {
	seen := map[string]int{}
	for _, e := range each() {
		r := inWorld(t, e, printedWorld)
		if len(r.Figures) != 1 || len(r.Figures[0].Lines) < 4 {
			t.Errorf("%s: no figure with four lines", e.Name)
		}
		for _, row := range table(t, r, "claims").Rows {
			seen[row[1].(string)]++
		}
	}
	for _, c := range claims {
		if want := min(1, max(0, 2-len(c.figures))); seen[c.text] != want {
			t.Errorf("%q is judged by %d figures alone, want %d", c.text, seen[c.text], want)
		}
	}
}

func table(t *testing.T, r lab.Report, name string) lab.Table {
	t.Helper()
	i := slices.IndexFunc(r.Tables, func(table lab.Table) bool { return table.Name == name })
	if i < 0 {
		t.Fatalf("%s has no table %q", r.Experiment, name)
	}
	return r.Tables[i]
}

// A scheme that is as good everywhere wins nowhere, and one that is worse loses everywhere.
func TestSelectionScore(t *testing.T) {
	equal := table(t, inWorld(t, Selection, func(figure, string, int) float64 { return 1 }), "wins")
	for _, row := range equal.Rows {
		if row[3] != 0 || row[5] != 0 || row[2].(int) < 40 {
			t.Errorf("equal schemes: %v", row)
		}
	}
	better := table(t, inWorld(t, Selection, func(_ figure, m string, _ int) float64 {
		return map[string]float64{waiting: 0.8, throughput: 1.1}[m]
	}), "wins")
	for _, row := range better.Rows {
		if row[0] == fifo.name && (row[3] != 0 || row[5] != row[2]) {
			t.Errorf("priority is better, and fifo has %v", row)
		}
	}
}
