package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// noisy has two configurations that share their noise, at points where there is more of it.
// Both get more seeds until their ratio is known well.
type noisy struct {
	tried atomic.Int64
	name  string
}

func (y *noisy) experiment() Experiment {
	one := func(name string, scale float64) Configuration {
		return Configuration{
			Labels: []string{name}, Points: []int{1, 3}, Replications: 4, Most: 25,
			Enough: func(r *Results, point int) bool {
				return y.ratio(r, point).Within(0.05)
			},
			Cost: func(point int) time.Duration { return time.Duration(point) * time.Second },
			Try: func(_ context.Context, point int, seed uint64) (Sample, error) {
				y.tried.Add(1)
				r := rand.New(rand.NewPCG(seed, uint64(point)))
				common, own := r.Float64(), 0.0
				if name == "own" {
					own = r.NormFloat64() * float64(point) / 30
				}
				return Sample{Values: map[string]float64{"v": scale * (1 + common + own)}}, nil
			},
		}
	}
	return Experiment{Name: y.name, Plan: func(Scale) Plan {
		return Plan{
			Sweep: "noise", Labels: []string{"name"}, Measures: []Column{{"v", "v"}, {"none", "none"}}, Trials: "toys/noisy",
			Configurations: []Configuration{one("common", 1), one("own", 2)},
			Report: func(r *Results) Report {
				var notes []string
				for _, point := range []int{1, 3} {
					notes = append(notes, fmt.Sprintf("%+v", y.ratio(r, point)))
				}
				return Report{Tables: []Table{r.Replications()}, Notes: notes}
			},
		}
	}}
}

func (y *noisy) ratio(r *Results, point int) Ratio {
	a, _ := r.At(point, "own")
	b, _ := r.At(point, "common")
	return RatioOf(a.Values("v"), b.Values("v"))
}

// How many seeds are tried depends on the samples alone: neither on workers nor on the cache.
func TestSequential(t *testing.T) {
	var want Report
	counts := func(r Report) map[int]int {
		n := map[int]int{}
		for _, row := range r.Tables[0].Rows {
			n[row[1].(int)]++
		}
		return n
	}
	cache := t.TempDir()
	for i, o := range []Options{{Workers: 1}, {Workers: 4}, {Workers: 3, Cache: cache}, {Workers: 2, Cache: cache}} {
		y := &noisy{name: "toys/noisy"}
		var last Progress
		o.Progress = func(p Progress) { last = p }
		r, err := Run(t.Context(), y.experiment(), o)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want = r
			n := counts(r)
			if n[1] != 8 || n[3] <= 8 || n[3] >= 50 {
				t.Errorf("trials by noise %v, want 8 at 1, and more at 3", n)
			}
		}
		if fmt.Sprint(r.Tables, r.Notes) != fmt.Sprint(want.Tables, want.Notes) {
			t.Errorf("%+v: %v, want %v", o, r.Notes, want.Notes)
		}
		if cached := i == 3; cached != (y.tried.Load() == 0) {
			t.Errorf("%+v: %d trials were made", o, y.tried.Load())
		}
		if last.Done != last.Total || last.Left != 0 || (last.Made == 0) != (i == 3) {
			t.Errorf("%+v: progress ends with %+v", o, last)
		}
	}
	// Another experiment with the same trials has them already.
	y := &noisy{name: "toys/all"}
	if _, err := Run(t.Context(), y.experiment(), Options{Cache: cache}); err != nil || y.tried.Load() != 0 {
		t.Errorf("%d trials were made again, error %v", y.tried.Load(), err)
	}
}

// A run with at most some seeds must know when it has enough.
func TestSequentialOptions(t *testing.T) {
	for what, spoil := range map[string]func(*Configuration){
		"fewer at most": func(c *Configuration) { c.Most = 3 },
		"never enough":  func(c *Configuration) { c.Enough = nil },
	} {
		e := (&noisy{name: "toys/noisy"}).experiment()
		sound := e.Plan
		e.Plan = func(s Scale) Plan {
			p := sound(s)
			spoil(&p.Configurations[0])
			return p
		}
		if _, err := Run(t.Context(), e, Options{}); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestRatio(t *testing.T) {
	a := []float64{2, 4, 6, 8}
	half := []float64{1, 2, 3, 4}
	if r := RatioOf(a, half); r.Mean != 2 || r.Half > 1e-12 || math.Abs(r.Removed-1) > 1e-12 {
		t.Errorf("%+v, want exactly 2, all variance removed", r)
	}
	// b = 3, 2, 1, 2 goes against a: residuals a - 2.5b, t(0.975, 3) = 3.182.
	r := RatioOf(a, []float64{3, 2, 1, 2})
	if fmt.Sprintf("%.3f %.3f", r.Mean, r.Half) != "2.500 3.328" || r.Removed >= 0 {
		t.Errorf("%+v, want 2.5 +- 3.328, variance added", r)
	}
	if r := RatioOf(a, half[:1]); r.Mean != 2 || r.N != 1 || r.Within(1) {
		t.Errorf("%+v, want 2 of one pair, without an interval", r)
	}
	// The means are of what has a partner, and not of all.
	r = RatioOf(a, []float64{1, 2})
	if r.Over != 3 || r.Under != 1.5 || r.Over/r.Under != r.Mean {
		t.Errorf("%+v, want 3 over 1.5", r)
	}
	if all := EstimateOf(a).Mean; all/r.Under == r.Mean {
		t.Errorf("the mean %g of all gives the same ratio", all)
	}
	e := Estimate{Mean: 10, Half: 1, N: 2}
	if !e.Within(0.1) || e.Within(0.09) || !e.Covers(9) || e.Covers(11.1) {
		t.Errorf("%+v: Within or Covers is wrong", e)
	}
}

// A quotient of one over one is a ratio, with its interval; what is on both sides cancels, chance
// and all; and what is tried by itself does not.
func TestQuotient(t *testing.T) {
	a, b, c := []float64{2, 4, 6, 8}, []float64{3, 2, 1, 2}, []float64{5, 1, 7, 2}
	near := func(e Estimate, mean, half float64) bool {
		return math.Abs(e.Mean-mean) < 1e-9 && math.Abs(e.Half-half) < 1e-9
	}
	r := RatioOf(a, b)
	if q := QuotientOf([][]float64{a}, [][]float64{b}); !near(q, r.Mean, r.Half) {
		t.Errorf("%+v, want %+v", q, r)
	}
	if q := QuotientOf([][]float64{a, c}, [][]float64{c, b}); !near(q, r.Mean, r.Half) {
		t.Errorf("%+v, want %+v: what is on both sides", q, r)
	}
	if q := QuotientOf([][]float64{a, c}, [][]float64{{2, 7, 5, 1}, b}); near(q, r.Mean, r.Half) {
		t.Errorf("%+v: other values do not count", q)
	}
	if q := QuotientOf([][]float64{a, a[:2]}, [][]float64{b, b}); !near(q, 1.44, q.Half) || q.N != 2 {
		t.Errorf("%+v, want (3/2.5)^2 of the first two", q)
	}
}

// Among many intervals those that are to hold together are wider: for ten t(0.9975, 4) = 5.598.
func TestAmong(t *testing.T) {
	e := Estimate{Mean: 3, Half: 2.776, N: 5}
	if got := e.Among(10); got.Mean != 3 || fmt.Sprintf("%.2f", got.Half) != "5.60" {
		t.Errorf("%+v, want 3 +- 5.60", got)
	}
	if got := e.Among(1); math.Abs(got.Half-e.Half) > 1e-12 {
		t.Errorf("%+v alone, want %+v", got, e)
	}
	if one := (Estimate{Mean: 3, N: 1}); one.Among(10) != one {
		t.Error("one value alone has an interval")
	}
}

// A figure shows intervals and what a source prints, and equal figures are equal bytes.
func TestFigure(t *testing.T) {
	f := Figure{Name: "a", Linear: true, Lines: []Line{
		{Name: "ours", Points: [][2]float64{{0, 1}, {2, 1.5}}, Half: []float64{0.1, 0.2}},
		{Name: "mark", Points: [][2]float64{{1, 1}}, Printed: true},
		{Name: "level", Points: [][2]float64{{0, 2}, {2, 2}}, Printed: true},
	}}
	r := Report{Experiment: "toys/figure", Figures: []Figure{f}}
	files, err := r.contents()
	if err != nil {
		t.Fatal(err)
	}
	again, _ := r.contents()
	if svg := files["toys-figure-a.svg"]; len(svg) == 0 || !slices.Equal(svg, again["toys-figure-a.svg"]) {
		t.Error("the figure is not there, or not the same")
	}
	bare := f
	bare.Lines = []Line{{Name: "ours", Points: f.Lines[0].Points}}
	r.Figures[0] = bare
	without, err := r.contents()
	if err != nil || len(without["toys-figure-a.svg"]) >= len(files["toys-figure-a.svg"]) {
		t.Errorf("intervals and marks do not show: error %v", err)
	}
}

// Whatever a figure shows can be read: both axes have several labels, each line looks like no other
// one, none lies hidden under another one, and the legend lies within the picture.
func TestFigureReadable(t *testing.T) {
	f := Figure{Title: "title", X: "x", Y: "y"}
	for k := range 12 {
		l := Line{Name: strings.Repeat("a long name ", 5)}
		for x := 3.0; x <= 20; x++ {
			l.Points = append(l.Points, [2]float64{x, float64(1+k/2) * x})
		}
		f.Lines = append(f.Lines, l)
	}
	var b strings.Builder
	if err := f.write(&b); err != nil {
		t.Fatal(err)
	}
	svg := b.String()
	var width, height float64
	if _, err := fmt.Sscanf(svg[strings.Index(svg, "viewBox="):], `viewBox="0 0 %g %g"`, &width, &height); err != nil {
		t.Fatal(err)
	}
	across, up := 0, 0
	for _, m := range regexp.MustCompile(`<text x="(\S+)" y="(\S+)"[^>]*>([^<]*)<`).FindAllStringSubmatch(svg, -1) {
		var x, y, label float64
		fmt.Sscan(m[1], &x)
		fmt.Sscan(m[2], &y)
		// No sans-serif font has characters wider than this on average.
		if size := 6.5 * float64(len(m[3])); m[3] == f.Lines[0].Name && x+size > width {
			t.Errorf("%q ends at %g of %g", m[3], x+size, width)
		}
		switch n, _ := fmt.Sscan(m[3], &label); {
		case n == 0:
		case -y < 20:
			across++
		default:
			up++
		}
	}
	if across < 5 || up < 3 {
		t.Errorf("%d labels along x and %d along y", across, up)
	}
	type stroke struct{ color, width string }
	strokes := map[stroke]bool{}
	paths := regexp.MustCompile(`<path d="M[^Z"]*L[^Z"]*L[^Z"]*" style="fill:none;stroke:(#\w+);stroke-width:([\d.]+)`).FindAllStringSubmatch(svg, -1)
	covered := 0
	for _, m := range paths {
		strokes[stroke{m[1], m[2]}] = true
		if m[2] != "1.2" {
			covered++
		}
	}
	if len(strokes) != 12 || covered != 6 {
		t.Errorf("%d strokes of 12 lines, %d of them wider, want 6: %v", len(strokes), covered, strokes)
	}
	for _, want := range []string{"sans-serif", "prefers-color-scheme:dark"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s", want)
		}
	}
}
