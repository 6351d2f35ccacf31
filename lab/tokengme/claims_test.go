package tokengme

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
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
		return between(1.1, 1.005)
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
		return between(0.99, 0.76)
	case "fig7a throughput":
		return between(1.01, 1.22)
	case "fig7b waiting":
		return between(0.99, 0.82)
	case "fig7b throughput":
		return between(1.01, 1.14)
	}
	return map[string]float64{messages: 0.95, size: 0.05}[measure]
}

// inWorld runs e at the full scale, with ratios of a world in place of simulations.
func inWorld(t *testing.T, e lab.Experiment, world func(f figure, measure string, x int) float64) lab.Report {
	t.Helper()
	return inTrials(t, e, func(f figure, form, measure string, x int, chance *rand.Rand) float64 {
		common := 1 + 0.1*chance.Float64()
		if strings.HasPrefix(form, token.name) && form != fifo.name {
			return common * world(f, measure, x)
		}
		return common
	})
}

// trials say what a form gives for a measure at a point of a figure.
type trials func(f figure, form, measure string, x int, chance *rand.Rand) float64

// inTrials runs e at the full scale, with trials that give what value says; chance is the same for
// all forms and measures at a point.
func inTrials(t *testing.T, e lab.Experiment, value trials) lab.Report {
	t.Helper()
	plan := e.Plan
	e.Plan = func(s lab.Scale) lab.Plan {
		p := plan(s)
		for i := range p.Configurations {
			c := &p.Configurations[i]
			f := figures[slices.IndexFunc(figures, func(f figure) bool { return f.name == c.Labels[0] })]
			c.Try = func(_ context.Context, x int, seed uint64) (lab.Sample, error) {
				values := map[string]float64{}
				for _, m := range []string{messages, size, waiting, throughput} {
					values[m] = value(f, c.Labels[1], m, x, rand.New(rand.NewPCG(seed, uint64(x))))
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
	if r.Verdicts[lab.Reproduced] != len(stated) || len(r.Verdicts) != 1 {
		t.Errorf("as printed: %s, want %d reproduced\n%s", r.Summary(), len(stated), text(t, r))
	}
	r = inWorld(t, All, func(f figure, measure string, x int) float64 { return 1 / printedWorld(f, measure, x) })
	if r.Verdicts[lab.NotReproduced] < len(stated)-5 {
		t.Errorf("the other way round: %s\n%s", r.Summary(), text(t, r))
	}
	// Ties are not reproduced, but for what tends to 1, and for messages, which may be as many.
	r = inWorld(t, All, func(figure, string, int) float64 { return 1 })
	for _, row := range table(t, r, "claims").Rows {
		free := strings.Contains(row[1].(string), "tends to 1") || strings.Contains(row[1].(string), "slightly fewer")
		if (row[3] == lab.NotReproduced) == free {
			t.Errorf("where all are equal: %v", row)
		}
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
	for _, c := range stated {
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

// A percentage is reproduced within five points, and beyond the interval of the ratio: a wide one
// does not help, and a tie is no change. A trend, and what is said of all points, go by intervals.
func TestJudges(t *testing.T) {
	ratio := func(mean, half float64) lab.Ratio {
		return lab.Ratio{Estimate: lab.Estimate{Mean: mean, Half: half, N: 5}}
	}
	for _, c := range []struct {
		ratio   lab.Ratio
		printed float64
		want    lab.Verdict
	}{
		{ratio(0.861, 0.008), -10, lab.Reproduced},
		{ratio(0.849, 0.008), -10, lab.Partly},
		{ratio(0.849, 0.1), -10, lab.Partly},
		{ratio(0.93, 0.08), -10, lab.NotReproduced},
		{ratio(1.1, 0.01), -10, lab.NotReproduced},
		{ratio(1.001, 0.0005), 5, lab.Reproduced},
		{ratio(1.001, 0.002), 5, lab.NotReproduced},
		{ratio(1.248, 0.006), 22, lab.Reproduced},
		{ratio(1.28, 0.05), 22, lab.Partly},
	} {
		if got := changed(c.ratio, c.printed); got != c.want {
			t.Errorf("%s, printed %+g %%: %s, want %s", percent(c.ratio.Estimate), c.printed, got, c.want)
		}
	}
	// At so many of the points of 4.2 priority is better; it ties at the others, or is worse.
	for _, c := range []struct {
		better int
		other  float64
		want   lab.Verdict
	}{
		{19, 1, lab.Reproduced},
		{18, 1, lab.Partly},
		{18, 1.2, lab.Partly},
		{10, 1, lab.Partly},
		{9, 1, lab.NotReproduced},
		{0, 1.2, lab.NotReproduced},
	} {
		points := map[string]int{}
		for _, name := range seven {
			f := figures[slices.IndexFunc(figures, func(f figure) bool { return f.name == name })]
			for _, x := range f.points {
				points[place{{figure: name, x: x}}.String()] = len(points)
			}
		}
		r := inWorld(t, All, func(f figure, m string, x int) float64 {
			if i, in := points[place{{figure: f.name, x: x}}.String()]; in && i >= c.better {
				return c.other
			}
			return 0.9
		})
		for _, row := range table(t, r, "claims").Rows {
			if row[1] == "priority waits less than FIFO" && row[3] != c.want {
				t.Errorf("better at %d, and %g at the others: %v, want %s", c.better, c.other, row, c.want)
			}
		}
	}
}

// The means that stand beside a ratio are those of the seeds it is made of, where one form has
// more seeds than the other, too.
func TestMeans(t *testing.T) {
	noisy := func(_ figure, form, _ string, x int, chance *rand.Rand) float64 {
		if strings.HasPrefix(form, token.name) {
			chance.Float64()
		}
		return 1 + chance.Float64()
	}
	r := inTrials(t, All, noisy)
	ratios, samples := table(t, r, "ratios"), table(t, r, "replications")
	wrong := func(over, under func(row []any) float64) (n int) {
		for _, row := range ratios.Rows {
			if ratio := row[6].(float64); math.Abs(over(row)/under(row)-ratio) > 1e-9 {
				n++
			}
		}
		return n
	}
	column := func(i int) func([]any) float64 { return func(row []any) float64 { return row[i].(float64) } }
	if n := wrong(column(9), column(10)); n > 0 {
		t.Errorf("in %d of %d rows the means are not those of the ratio", n, len(ratios.Rows))
	}
	// Broken: the mean of all seeds that the form below the line has.
	at := map[string]int{}
	for i, c := range samples.Columns {
		at[c.Name] = i
	}
	all := map[string][]float64{}
	for _, row := range samples.Rows {
		for _, m := range []string{messages, size, waiting, throughput, throughput90} {
			name := fmt.Sprint(row[0], row[1], row[2], m)
			all[name] = append(all[name], row[at[m]].(float64))
		}
	}
	of := func(form int) func([]any) float64 {
		return func(row []any) float64 {
			return lab.EstimateOf(all[fmt.Sprint(row[0], row[form], row[1], row[4])]).Mean
		}
	}
	if n := wrong(of(2), of(3)); n == 0 {
		t.Error("means of all seeds are not found out")
	}
}

// Choices that change nothing but chance change no verdict, and no claim depends on them. One
// that changes a ratio is named, with what it changes.
func TestChoices(t *testing.T) {
	// Each form has chance of its own beside that of all; many claims are near their bounds.
	world := func(f figure, form, measure string, x int, chance *rand.Rand) float64 {
		name := fnv.New64()
		fmt.Fprint(name, f.name, form, measure)
		own := rand.New(rand.NewPCG(chance.Uint64(), name.Sum64()))
		v := (1 + 0.1*chance.Float64()) * (1 + 0.02*own.Float64())
		if strings.HasPrefix(form, token.name) && form != fifo.name {
			v *= map[string]float64{messages: 0.9, size: 0.65, waiting: 0.99, throughput: 1.01}[measure]
		}
		return v
	}
	r := inTrials(t, All, world)
	if rows := table(t, r, "choices").Rows; len(rows) > 0 {
		t.Errorf("chance alone changes verdicts: %v", rows)
	}
	named := 0
	for _, row := range table(t, r, "claims").Rows {
		if depends := row[4]; depends != "" && depends != "none of those tried" {
			named++
		}
	}
	t.Logf("by chance %d claims depend on a choice", named)
	if named > 4 { // 1.6 are expected: an interval of 95 % for each of them
		t.Errorf("by chance %d claims depend on a choice", named)
	}
	// Without the interval of the change, chance does change some.
	s := study{scale: lab.Full, results: resultsOf(t, world), figures: figures}
	naive, fewer := 0, 0
	for _, c := range stated {
		tried, _ := s.rejudge(c)
		for _, r := range tried {
			if r.without.verdict != r.with.verdict {
				naive++
			}
			if a, b := seeds(r.without), seeds(r.with); a != b {
				t.Errorf("%q is judged with %s by %d seeds, and without by %d", c.text, r.choice.name, b, a)
			}
			if alone := seeds(c.find(evidence{study: s, choice: ours, beside: ours})); alone != seeds(r.with) {
				fewer++
			}
		}
	}
	if fewer == 0 {
		t.Error("all choices have all seeds: this world shows nothing")
	}
	if naive == 0 {
		t.Error("verdicts alone do not differ by chance: this world shows nothing")
	}

	r = inTrials(t, All, func(f figure, form, measure string, x int, chance *rand.Rand) float64 {
		v := world(f, form, measure, x, chance)
		if form == strict.name && measure == waiting && f.name == "fig6b" && x == 4000 {
			v *= 0.5
		}
		return v
	})
	found := false
	for _, row := range table(t, r, "choices").Rows {
		found = found || row[0] == "abstract, 4.1" && row[2] == strict.name && row[6] == string(lab.Reproduced)
		if row[2] != strict.name {
			t.Errorf("%v: strict alone differs", row)
		}
	}
	if !found {
		t.Error("what strict makes of the waiting is not there")
	}
	for _, row := range table(t, r, "claims").Rows {
		if row[1] == "less waiting in all other cases" && !strings.HasPrefix(row[4].(string), strict.name+": -50.") {
			t.Errorf("%v: it depends on strict, by half", row)
		}
	}
}

// seeds is how many replications a finding rests on, but for those of the best point, which may be
// another one.
func seeds(f finding) (n int) {
	if len(f.rests) < 3 {
		return 0
	}
	for _, p := range f.rests {
		n += p[0].N
	}
	return n
}

// What a choice changes is the ratio of the ratios: of one to another point where a step is
// judged, and its inverse where those of RA2 to TokenGME are.
func TestChange(t *testing.T) {
	s := study{scale: lab.Full, figures: figures, results: resultsOf(t,
		func(f figure, form, measure string, x int, chance *rand.Rand) float64 {
			v := 1 + chance.Float64()
			switch {
			case form == onEntry.name && x == 5:
				v *= 2 // half the ratio
			case form == onEntry.name && x == 10:
				v *= 3
			}
			return v
		})}
	c := choice{onEntry.name, onEntry.name, throughput}
	five, ten := point{figure: "fig6c", x: 5, measure: waiting}, point{figure: "fig6c", x: 10, measure: waiting}
	swapped := five
	swapped.swapped = true
	for _, w := range []struct {
		at   place
		want float64
	}{{place{five}, 1. / 2}, {place{ten}, 1. / 3}, {place{five, ten}, 2. / 3}, {place{swapped}, 2}} {
		if e, known := s.change(w.at, c); !known || math.Abs(e.Mean-w.want) > 1e-9 || e.Half > 1e-9 {
			t.Errorf("%s: %+v (%t), want %.3f", w.at, e, known, w.want)
		}
	}
	if _, known := s.change(place{five}, choice{"throughput to 90 %", "", throughput90}); known {
		t.Error("another measure of throughput is said to change the waiting")
	}
}

// resultsOf are those of all figures in a world.
func resultsOf(t *testing.T, world trials) (results *lab.Results) {
	t.Helper()
	e := All
	e.Plan = func(s lab.Scale) lab.Plan {
		p := All.Plan(s)
		p.Report = func(r *lab.Results) lab.Report {
			results = r
			return lab.Report{}
		}
		return p
	}
	inTrials(t, e, world)
	return results
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
