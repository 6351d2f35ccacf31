package tokengme

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/poundlock/poundlock/lab"
)

// A figure of section 4: what it varies, and whose performance it divides by whose.
type figure struct {
	name, title, x string
	points         []int // of the full scale; others take some of them
	quick          []int
	vary           func(p *parameters, point int)
	over, under    form
	// others stand in place of one of those two, for the choices that are open.
	others []form
	// printed are the values of ratios that the text has.
	printed []printed
}

// A printed value of a ratio is at a point, or for the whole figure where that is any.
type printed struct {
	measure string
	at      int
	value   float64
}

const anywhere = -1

var open = []form{strict, ordered, onEntry, valuesOf}

// mostProcesses bounds the systems in which choices are tried, but for the accounting of
// integers in the largest one.
const mostProcesses = 200

var figures = []figure{
	{
		name: "fig6a", title: "Fig. 6(a): TokenGME / RA2 over the number of groups", x: "groups m",
		points: []int{2, 5, 10, 25, 50, 75, 100, 125, 150}, quick: []int{2, 10, 50, 150},
		vary: func(p *parameters, m int) { p.m = m },
		over: token, under: ra2, others: open,
		printed: []printed{{size, anywhere, 0.05}, {waiting, 2, 1 / 0.9}, {throughput, 2, 1 / 1.05}},
	},
	{
		name: "fig6b", title: "Fig. 6(b): TokenGME / RA2 over the mean inter-request delay", x: "mean inter-request delay, ms",
		points: []int{0, 50, 100, 250, 500, 1000, 2000, 3000, 4000}, quick: []int{0, 50, 1000, 4000},
		vary: func(p *parameters, ncs int) { p.ncs = ncs },
		over: token, under: ra2, others: open,
		printed: []printed{{messages, anywhere, 0.55}, {size, anywhere, 0.05}, {throughput, 4000, 1}},
	},
	{
		name: "fig6c", title: "Fig. 6(c): TokenGME / RA2 over the mean critical section", x: "mean critical section, ms",
		points: []int{0, 5, 10, 20, 30, 40, 50}, quick: []int{0, 20, 50},
		vary: func(p *parameters, cs int) { p.cs = cs },
		over: token, under: ra2, others: open,
		printed: []printed{{size, anywhere, 0.05}},
	},
	{
		name: "fig6d", title: "Fig. 6(d): TokenGME / RA2 over the mean channel delay", x: "mean channel delay, ms",
		points: []int{0, 5, 10, 20, 30, 40, 50}, quick: []int{0, 10, 50},
		vary: func(p *parameters, cd int) { p.cd = cd },
		over: token, under: ra2, others: open,
		printed: []printed{{size, anywhere, 0.05}},
	},
	{
		name: "fig6e", title: "Fig. 6(e): TokenGME / RA2 over the degree of non-uniformity", x: "beta %, with alpha = 100 - beta",
		points: []int{50, 55, 60, 65, 70, 75, 80, 85, 90}, quick: []int{50, 70, 90},
		vary: skew,
		over: token, under: ra2, others: open,
		printed: []printed{{size, anywhere, 0.05}},
	},
	{
		name: "fig6f", title: "Fig. 6(f): TokenGME / RA2 over the number of processes", x: "processes n",
		points: []int{5, 10, 20, 50, 100, 200, 300, 400, 500}, quick: []int{5, 20, 50, 100, 200, 300},
		vary: processes,
		over: token, under: ra2, others: open,
		printed: []printed{{size, 5, 2.22}, {size, 500, 0.01}},
	},
	{
		name: "fig7a", title: "Fig. 7(a): priority-based / FIFO-based selection over the number of processes", x: "processes n",
		points: []int{2, 5, 10, 20, 50, 100, 200, 300, 400, 500}, quick: []int{5, 20, 50, 100, 200, 300},
		vary: processes,
		over: token, under: fifo,
		printed: []printed{{waiting, anywhere, 0.76}, {throughput, anywhere, 1.22}},
	},
	{
		name: "fig7b", title: "Fig. 7(b): priority-based / FIFO-based selection over the degree of non-uniformity",
		x:      "beta %, with alpha = 100 - beta",
		points: []int{50, 55, 60, 65, 70, 75, 80, 85, 90}, quick: []int{50, 70, 90},
		vary: func(p *parameters, beta int) {
			p.n = 200
			skew(p, beta)
		},
		over: token, under: fifo,
		printed: []printed{{waiting, anywhere, 0.82}, {throughput, anywhere, 1.14}},
	},
}

func processes(p *parameters, n int) { p.n = n }

func skew(p *parameters, beta int) { p.alpha, p.beta = 100-beta, beta }

func (f figure) at(s lab.Scale, point int) parameters {
	p := base(s)
	f.vary(&p, point)
	return p
}

// pointsOf are those of a scale. Full has all; the default leaves large systems out.
func (f figure) pointsOf(s lab.Scale) []int {
	switch s {
	case lab.Quick:
		return f.quick
	case lab.Default:
		return slices.DeleteFunc(slices.Clone(f.points), func(x int) bool { return f.at(s, x).n > mostProcesses })
	}
	return f.points
}

// A comparison divides the performance of one form by that of another one.
type comparison struct{ over, under form }

// compared are the forms of f: its own ones, or with the other form of this name in place of
// one of them.
func (f figure) compared(other string) comparison {
	c := comparison{f.over, f.under}
	for _, o := range f.others {
		switch {
		case o.name != other:
		case o.algorithm == f.over.algorithm:
			c.over = o
		default:
			c.under = o
		}
	}
	return c
}

// enough reports whether the ratios at a point are known well enough.
func (f figure) enough(r *lab.Results, point int, precision float64) bool {
	for _, m := range []string{waiting, throughput} {
		ratio, known := f.ratio(r, point, m, f.compared(""))
		if known && !ratio.Within(precision) {
			return false
		}
	}
	return true
}

// ratio is that of a measure at a point: false where a form was not tried.
func (f figure) ratio(r *lab.Results, point int, measure string, c comparison) (lab.Ratio, bool) {
	values, known := f.values(r, point, measure, c.over, c.under)
	if !known {
		return lab.Ratio{}, false
	}
	return lab.RatioOf(values[0], values[1]), true
}

// values are those of a measure that forms gave at a point, with the seeds that all of them
// have: false where one was not tried, or gave 0.
func (f figure) values(r *lab.Results, point int, measure string, forms ...form) (values [][]float64, known bool) {
	seeds := math.MaxInt
	for _, form := range forms {
		c, tried := r.At(point, f.name, form.name)
		if !tried {
			return nil, false
		}
		v := c.Values(measure)
		if len(v) == 0 || lab.EstimateOf(v).Mean == 0 {
			return nil, false
		}
		values, seeds = append(values, v), min(seeds, len(v))
	}
	for i := range values {
		values[i] = values[i][:seeds]
	}
	return values, true
}

// configuration tries one form at the points of f.
func (f figure) configuration(s lab.Scale, form form, points []int) lab.Configuration {
	p := base(s)
	c := lab.Configuration{
		Labels:       []string{f.name, form.name},
		Points:       points,
		Replications: p.replications,
		Setup:        fmt.Sprintf("%+v bandwidth=%d %s %v fifo=%v", p, bandwidth, form.algorithm, form.options, form.fifo),
		Try: func(_ context.Context, point int, seed uint64) (lab.Sample, error) {
			return form.simulate(f.at(s, point), seed)
		},
		Cost: func(point int) time.Duration { return form.cost(f.at(s, point)) },
	}
	if form.name == f.over.name || form.name == f.under.name {
		c.Most = p.most
		c.Enough = func(r *lab.Results, point int) bool { return f.enough(r, point, p.precision) }
	}
	return c
}

// choicePoints are those at which a choice is tried: all with few processes, and at the full
// scale the accounting in the largest system, too; at the quick scale the first point.
func (f figure) choicePoints(s lab.Scale, c form) (list []int) {
	for _, x := range f.pointsOf(s) {
		if f.at(s, x).n <= mostProcesses || s == lab.Full && c.name == valuesOf.name && x == slices.Max(f.points) {
			list = append(list, x)
		}
	}
	if s == lab.Quick {
		return list[:1]
	}
	return list
}

func plan(s lab.Scale, list ...figure) lab.Plan {
	p := lab.Plan{Sweep: "x", Labels: []string{"figure", "form"}, Measures: measures, Trials: "tokengme"}
	for _, f := range list {
		points := f.pointsOf(s)
		p.Configurations = append(p.Configurations, f.configuration(s, f.over, points), f.configuration(s, f.under, points))
		for _, c := range f.others {
			p.Configurations = append(p.Configurations, f.configuration(s, c, f.choicePoints(s, c)))
		}
	}
	p.Report = func(r *lab.Results) lab.Report { return study{s, r, list}.report() }
	return p
}
