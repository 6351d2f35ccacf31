package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// toy is an experiment whose trials cost nothing: throws of two dice with x sides. tried
// counts them; each may be told to fail, or to wait.
type toy struct {
	tried atomic.Int64
	try   func(ctx context.Context, point int, seed uint64) error
	added float64 // to each count: a broken toy
}

func (y *toy) experiment() Experiment {
	return Experiment{Name: "toys/dice", Title: "two dice", Plan: func(s Scale) Plan {
		points := []int{2, 6, 20}
		if s == Quick {
			points = points[:2]
		}
		return Plan{
			Sweep: "sides", Labels: []string{"dice", "what"},
			Measures: []Column{{"count", "dice"}, {"sum", "sum"}, {"last", "last"}, {"never", "never"}},
			Configurations: []Configuration{
				y.dice("two", 2, points), y.dice("three", 3, points[:2]),
			},
			Report: func(r *Results) Report {
				f := Figure{Title: "sums", X: "sides", Y: "sum"}
				for _, name := range []string{"two", "three"} {
					line := Line{Name: name}
					for _, c := range r.Of(name, "sums") {
						line.Points = append(line.Points, [2]float64{float64(c.Point), EstimateOf(c.Values("sum")).Mean})
					}
					f.Lines = append(f.Lines, line)
				}
				last := r.Cells()[0].Samples[0].Texts["last"]
				return Report{
					Tables:   []Table{r.Compare("all", "All")},
					Figures:  []Figure{f},
					Notes:    []string{"the last die showed " + last},
					Attached: map[string]string{"last.txt": last},
				}
			},
		}
	}}
}

func (y *toy) dice(name string, k int, points []int) Configuration {
	return Configuration{
		Labels: []string{name, "sums"}, Points: points, Replications: 8, Setup: fmt.Sprintf("added=%g", y.added),
		Try: func(ctx context.Context, point int, seed uint64) (Sample, error) {
			y.tried.Add(1)
			if y.try != nil {
				if err := y.try(ctx, point, seed); err != nil {
					return Sample{}, err
				}
			}
			sum, last, r := 0, 0, rand.New(rand.NewPCG(seed, uint64(point)))
			for range k {
				last = 1 + r.IntN(point)
				sum += last
			}
			return Sample{
				Values: map[string]float64{"count": float64(k) + y.added, "sum": float64(sum), "last": float64(last)},
				Texts:  map[string]string{"last": fmt.Sprint(last)},
			}, nil
		},
		Expect: func(point int) []Expectation {
			mean := float64(k) * float64(point+1) / 2
			return []Expectation{
				{Measure: "count", Least: float64(k), Most: float64(k), Formula: "k"},
				{Measure: "last", Least: 1, Most: math.Inf(1), Formula: "at least 1"},
				{Measure: "sum", Least: mean, Most: mean, Formula: "k(x+1)/2", Published: "kx/2"},
			}
		},
	}
}

// report runs a toy, and returns the files of its report by name.
func report(t *testing.T, y *toy, o Options) (Report, map[string]string) {
	t.Helper()
	r, err := Run(t.Context(), y.experiment(), o)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, name := range r.Files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	return r, files
}

// What is reported depends neither on the number of workers nor on the cache.
func TestSameBytes(t *testing.T) {
	_, want := report(t, &toy{}, Options{Workers: 1})
	names := []string{"toys-dice.txt", "toys-dice.csv", "toys-dice.json", "toys-dice.svg", "toys-dice/last.txt"}
	for _, name := range names {
		if want[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	if len(want) != len(names) {
		t.Errorf("%d files, want %v", len(want), names)
	}
	cache := t.TempDir()
	for _, o := range []Options{
		{Workers: 2},
		{Workers: 5, Cache: cache},
		{Workers: 3, Cache: cache},
	} {
		_, got := report(t, &toy{}, o)
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("%+v: %s is\n%s\nwant\n%s", o, name, got[name], want[name])
			}
		}
	}
}

// The text says what was measured, what was expected and whether they agree; a broken toy
// differs.
func TestVerdicts(t *testing.T) {
	r, _ := report(t, &toy{}, Options{})
	if r.Verdicts[Equal] != 5 || r.Verdicts[Within] != 10 || r.Differs() != 0 {
		t.Errorf("verdicts %v, want 5 equal and 10 within", r.Verdicts)
	}
	broken, files := report(t, &toy{added: 1}, Options{})
	if broken.Verdicts[Differs] != 5 || broken.Differs() != 5 {
		t.Errorf("broken: verdicts %v, want 5 that differ", broken.Verdicts)
	}
	for name, want := range map[string]string{
		"toys-dice.csv":  "two,sums,6,count,8,3,0,2,2,k,,differs\n",
		"toys-dice.json": `"measure": "count", "trials": 8, "measured": 3, "half_width": 0, "least": 2, "most": 2, "formula": "k", "published": "", "verdict": "differs"}`,
		"toys-dice.txt":  "verdicts: 10 within interval, 5 differs\n",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q:\n%s", name, want, files[name])
		}
	}
	if !strings.Contains(files["toys-dice.json"], `"least": 1, "most": null`) {
		t.Error("a bound that is infinite is not null")
	}
	if strings.Contains(files["toys-dice.csv"], "never") {
		t.Error("a measure that no trial has stands in the table")
	}
}

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		least, most float64
		values      []float64
		want        Verdict
	}{
		{4, 4, []float64{4, 4}, Equal},
		{4, 4, []float64{4}, Equal},
		{4, 4, []float64{4.001}, Differs},
		{4, 4, []float64{3, 5}, Within}, // chance may have done that
		{4, 4, []float64{4.9, 5, 5.1}, Differs},
		{3, 5, []float64{4}, Within},
		{3, 5, []float64{5.01}, Differs},
		{3, 5, nil, Differs},
	} {
		if got := (Expectation{Least: test.least, Most: test.most}).Verdict(test.values); got != test.want {
			t.Errorf("%v in [%g, %g]: %s, want %s", test.values, test.least, test.most, got, test.want)
		}
	}
}

// The quantile is that of tables: t(0.975, 4) = 2.776.
func TestEstimate(t *testing.T) {
	e := EstimateOf([]float64{1, 2, 3, 4, 5})
	if e.Mean != 3 || e.N != 5 || fmt.Sprintf("%.3f", e.Half) != "1.963" {
		t.Errorf("%+v, want 3 +- 1.963", e)
	}
	if e := EstimateOf([]float64{7}); e != (Estimate{Mean: 7, N: 1}) {
		t.Errorf("%+v, want 7 without an interval", e)
	}
}

// A trial that fails ends the run, with its name.
func TestFailure(t *testing.T) {
	y := &toy{try: func(_ context.Context, point int, seed uint64) error {
		if point == 6 && seed == 3 {
			return errors.New("it fell off the table")
		}
		return nil
	}}
	_, err := Run(t.Context(), y.experiment(), Options{Workers: 2})
	if err == nil || !strings.Contains(err.Error(), "/ sums, sides=6, seed 3: it fell off the table") {
		t.Errorf("error %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, workers := range []int{-1, MaxWorkers + 1} {
		if _, err := Run(t.Context(), (&toy{}).experiment(), Options{Workers: workers}); err == nil {
			t.Errorf("%d workers are accepted", workers)
		}
	}
	for what, spoil := range map[string]func(*Plan){
		"labels":    func(p *Plan) { p.Configurations[0].Labels = nil },
		"two":       func(p *Plan) { p.Configurations[1].Labels = p.Configurations[0].Labels },
		"nowhere":   func(p *Plan) { p.Configurations[1].Points = nil },
		"twice":     func(p *Plan) { p.Configurations[1].Points = []int{3, 3} },
		"least 1":   func(p *Plan) { p.Configurations[1].Replications = -1 },
		"nothing":   func(p *Plan) { p.Configurations = nil },
		"toys/dice": func(p *Plan) { p.Configurations = nil },
	} {
		e := (&toy{}).experiment()
		sound := e.Plan
		e.Plan = func(s Scale) Plan {
			p := sound(s)
			spoil(&p)
			return p
		}
		if _, err := Run(t.Context(), e, Options{}); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

// Files of an earlier report that this one has not are removed, and no others.
func TestWriteAgain(t *testing.T) {
	dir := t.TempDir()
	r := Report{Experiment: "toys/files", Attached: map[string]string{"a.txt": "1", "b.txt": "2"}}
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "toys-files", "own.txt")
	if err := os.WriteFile(own, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	delete(r.Attached, "a.txt")
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "toys-files"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range left {
		names = append(names, f.Name())
	}
	if !slices.Equal(names, []string{"b.txt", "own.txt"}) {
		t.Errorf("left %v, want b.txt and own.txt", names)
	}
	// What claims to be an earlier report names files elsewhere: they stay.
	index := filepath.Join(dir, "toys-files.json")
	if err := os.WriteFile(index, []byte(`{"files": ["../toys-files", "other.txt"]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other.txt")
	if err := errors.Join(os.WriteFile(other, nil, 0o644), r.Write(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

func TestText(t *testing.T) {
	table := Table{Title: "T", Columns: []Column{{"a", "A"}, {"b", "long head"}, {"hidden", ""}, {"c", "C"}}}
	table.Add("x", 1.0/3, 7, nil)
	table.Add("", 12, 7, Equal)
	var b bytes.Buffer
	if err := table.writeText(&b); err != nil {
		t.Fatal(err)
	}
	want := "A  long head  C\n-  ---------  -\nx  0.33333    -\n-  12         equal\n"
	if b.String() != want {
		t.Errorf("text\n%s\nwant\n%s", b.String(), want)
	}
}

// An experiment that says so can be tried at one point alone, also at one that is not in its plan.
func TestPoint(t *testing.T) {
	y := &toy{}
	e := y.experiment()
	if _, err := Run(t.Context(), e, Options{Point: 6}); err == nil || y.tried.Load() > 0 {
		t.Errorf("an experiment that has no such points: %v, %d trials", err, y.tried.Load())
	}
	e.Least, e.Most = 2, 8
	for point, wanted := range map[int]bool{1: false, 2: true, 5: true, 8: true, 9: false, -1: false} {
		y.tried.Store(0)
		r, err := Run(t.Context(), e, Options{Point: point})
		if (err == nil) != wanted {
			t.Errorf("point %d: %v", point, err)
		}
		if err != nil {
			continue
		}
		for _, row := range r.Tables[0].Rows {
			if row[2] != point {
				t.Errorf("point %d: row %v", point, row)
			}
		}
		if y.tried.Load() != 16 {
			t.Errorf("point %d: %d trials, want 8 of each configuration", point, y.tried.Load())
		}
	}
}
