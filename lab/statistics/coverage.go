package statistics

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/poundlock/poundlock/lab"
)

// Coverage makes intervals of queues by way of package lab, many times, and counts how many
// cover what theory says.
var Coverage = lab.Experiment{
	Name:  "statistics/coverage",
	Title: "how often 95 % intervals cover the mean wait in queues, which theory knows",
	Plan:  coverage,
}

// The measures of a trial, which makes one interval of each kind.
const (
	exponential = "mm1"     // covered the wait in M/M/1: 0 or 1
	fixed       = "md1"     // the same in M/D/1
	ratio       = "ratio"   // the same for M/D/1's over M/M/1's, paired
	removed     = "removed" // part of the variance that pairing removed
	width       = "width"   // half of M/M/1's interval, relative to its mean
	made        = "made"    // replications
)

// A form is one way to make intervals.
type form struct {
	name             string
	load             float64
	first, customers int
	most             int  // replications, of a sequential form; 0: no more than the least
	broken           bool // it should not cover
	// spoil changes an interval; nil: it stays.
	spoil func(*lab.Estimate)
}

// precision is how narrow intervals of the sequential form must be, relative to the mean.
const precision = 0.05

// forms are tried with so many replications an interval.
var forms = []struct {
	form
	replications []int
}{
	{form{name: "Student", load: 0.5, first: 200, customers: 2000}, []int{5, 10, 40}},
	{form{name: "Student", load: 0.7, first: 200, customers: 500}, []int{40}},
	{form{name: "sequential", load: 0.5, first: 200, customers: 2000, most: 40}, []int{5}},
	{form{name: "normal quantile", load: 0.5, first: 200, customers: 2000, broken: true, spoil: normal}, []int{5}},
	{form{name: "warm-up kept", load: 0.7, customers: 500, broken: true}, []int{40}},
}

// normal makes an interval as if the variance were known.
func normal(e *lab.Estimate) {
	level := 0.975
	e.Half *= distuv.UnitNormal.Quantile(level) / distuv.StudentsT{Sigma: 1, Nu: float64(e.N - 1)}.Quantile(level)
}

func coverage(s lab.Scale) lab.Plan {
	p := lab.Plan{
		Sweep:    "replications",
		Labels:   []string{"interval", "load", "customers"},
		Measures: lab.Columns(exponential, fixed, ratio, removed, width, made),
		Report:   reportCoverage,
	}
	seeds := 2000
	if s == lab.Quick {
		seeds = 400
	}
	for _, f := range forms {
		p.Configurations = append(p.Configurations, lab.Configuration{
			Labels:       []string{f.name, fmt.Sprint(f.load), fmt.Sprint(f.customers)},
			Points:       f.replications,
			Replications: seeds,
			Setup:        fmt.Sprintf("first=%d most=%d precision=%g", f.first, f.most, precision),
			Try:          f.intervals,
		})
	}
	return p
}

// intervals runs an experiment with so many replications of both queues, and says which
// intervals cover what theory says.
func (f form) intervals(ctx context.Context, replications int, seed uint64) (lab.Sample, error) {
	seeds := rand.New(rand.NewPCG(seed, uint64(replications))).Uint64()
	one := func(q queue, name string) lab.Configuration {
		return lab.Configuration{
			Labels: []string{name}, Points: []int{f.customers}, Replications: replications, Most: f.most, Enough: precise,
			Try: func(_ context.Context, customers int, seed uint64) (lab.Sample, error) {
				return lab.Sample{Values: map[string]float64{"wait": q.run(seeds+seed, f.first, customers)}}, nil
			},
		}
	}
	mm1, md1 := queue{f.load, false}, queue{f.load, true}
	sample := lab.Sample{Values: map[string]float64{}}
	covers := func(measure string, e lab.Estimate, truth float64) {
		if f.spoil != nil {
			f.spoil(&e)
		}
		sample.Values[measure] = 0
		if e.Covers(truth) {
			sample.Values[measure] = 1
		}
	}
	inner := lab.Experiment{Name: "queues", Plan: func(lab.Scale) lab.Plan {
		return lab.Plan{
			Sweep: "customers", Labels: []string{"queue"},
			Configurations: []lab.Configuration{one(mm1, exponential), one(md1, fixed)},
			Report: func(r *lab.Results) lab.Report {
				a, b := r.Of(exponential)[0].Values("wait"), r.Of(fixed)[0].Values("wait")
				e, paired := lab.EstimateOf(a), lab.RatioOf(b, a)
				covers(exponential, e, mm1.wait())
				covers(fixed, lab.EstimateOf(b), md1.wait())
				covers(ratio, paired.Estimate, md1.wait()/mm1.wait())
				sample.Values[removed] = paired.Removed
				sample.Values[width] = e.Half / e.Mean
				sample.Values[made] = float64(e.N)
				return lab.Report{}
			},
		}
	}}
	_, err := lab.Run(ctx, inner, lab.Options{Workers: 1})
	return sample, err
}

func precise(r *lab.Results, customers int) bool {
	c, _ := r.At(customers, exponential)
	return lab.EstimateOf(c.Values("wait")).Within(precision)
}

// band is how far the share of so many intervals that cover the truth may be from 95 %:
// 1.5 % of 2000, which is three standard deviations.
func band(seeds int) float64 { return 0.015 * math.Sqrt(2000/float64(seeds)) }

func reportCoverage(r *lab.Results) lab.Report {
	t := lab.Table{
		Name:  "coverage",
		Title: "The share of intervals that cover the mean wait in M/M/1, in M/D/1, and the ratio of the two, paired",
		Columns: lab.Columns(
			"interval", "load", "customers", "replications", "made", "width=half width", "removed=removed by pairing",
			"seeds", "mm1=M/M/1", "md1=M/D/1", "ratio", "least", "most", "verdict",
		),
	}
	for _, f := range forms {
		for _, c := range r.Of(f.name, fmt.Sprint(f.load), fmt.Sprint(f.customers)) {
			mean := func(measure string) float64 { return lab.EstimateOf(c.Values(measure)).Mean }
			least, most := 0.95-band(len(c.Samples)), 0.95+band(len(c.Samples))
			in := func(v float64) bool { return least <= v && v <= most }
			a, b, both := mean(exponential), mean(fixed), mean(ratio)
			verdict := lab.Differs
			switch {
			case f.most > 0:
				verdict = "" // nothing is promised
			case f.broken && !in(a):
				verdict = lab.Violated
			case !f.broken && in(a) && in(b) && in(both):
				verdict = lab.Within
			}
			t.Add(f.name, f.load, f.customers, c.Point, mean(made), mean(width), mean(removed), len(c.Samples),
				a, b, both, least, most, verdict)
		}
	}
	return lab.Report{
		Tables: []lab.Table{t},
		Notes: []string{
			"made: replications an interval; a sequential one has enough when M/M/1's interval is within 5 % of its mean.",
			"A normal quantile in place of Student's, and the warm-up kept, are mistakes: they must be outside.",
		},
	}
}
