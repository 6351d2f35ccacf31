package lab

import (
	"cmp"
	"math"
	"slices"
)

// Results are the samples of a plan.
type Results struct {
	plan    Plan
	samples [][][]Sample // of each configuration, at each of its points, by seed
}

// A trial is one configuration at one of its points with one seed, 0 for the first.
type trial struct{ configuration, at, seed int }

func newResults(p Plan) *Results {
	r := &Results{plan: p}
	for _, c := range p.Configurations {
		r.samples = append(r.samples, make([][]Sample, len(c.Points)))
	}
	return r
}

// more makes room for as many trials as the samples so far ask for, and lists them. It
// begins with those that take longest: then the end is not spent waiting for one of those.
func (r *Results) more() []trial {
	var list []trial
	for k := range r.samples {
		for at, have := range r.samples[k] {
			for seed := len(have); seed < r.wanted(k, at); seed++ {
				list = append(list, trial{k, at, seed})
			}
		}
	}
	for _, t := range list {
		r.samples[t.configuration][t.at] = append(r.samples[t.configuration][t.at], Sample{})
	}
	slices.SortStableFunc(list, func(a, b trial) int { return cmp.Compare(r.cost(b), r.cost(a)) })
	return list
}

// wanted is how many seeds a configuration should have at one of its points.
func (r *Results) wanted(k, at int) int {
	c, have := &r.plan.Configurations[k], len(r.samples[k][at])
	switch {
	case have == 0:
		return c.Replications
	case c.Most <= have || c.Enough(r, c.Points[at]):
		return have
	}
	return min(c.Most, have+max(1, have/2))
}

// cost is what a trial costs, as its configuration says. By default larger points cost more.
func (r *Results) cost(t trial) float64 {
	c := &r.plan.Configurations[t.configuration]
	if c.Cost == nil {
		return float64(c.Points[t.at])
	}
	return c.Cost(c.Points[t.at]).Seconds()
}

// A Cell is one configuration at one point.
type Cell struct {
	*Configuration
	Point   int
	Samples []Sample // by seed
}

// Cells lists all of them, by configuration and point.
func (r *Results) Cells() []Cell {
	var cells []Cell
	for k := range r.plan.Configurations {
		cells = append(cells, r.cells(k)...)
	}
	return cells
}

func (r *Results) cells(k int) (cells []Cell) {
	c := &r.plan.Configurations[k]
	for at, point := range c.Points {
		cells = append(cells, Cell{c, point, r.samples[k][at]})
	}
	return cells
}

// Of returns the cells of the configuration with these labels, none if there is none.
func (r *Results) Of(labels ...string) []Cell {
	for k, c := range r.plan.Configurations {
		if slices.Equal(c.Labels, labels) {
			return r.cells(k)
		}
	}
	return nil
}

// At returns the cell of the configuration with these labels at a point, and whether there
// is one.
func (r *Results) At(point int, labels ...string) (Cell, bool) {
	for _, c := range r.Of(labels...) {
		if c.Point == point {
			return c, true
		}
	}
	return Cell{}, false
}

// Values are what the trials of a cell gave for a measure: none if it is not defined in
// some of them.
func (c Cell) Values(measure string) []float64 {
	var values []float64
	for _, s := range c.Samples {
		v, ok := s.Values[measure]
		if !ok {
			return nil
		}
		values = append(values, v)
	}
	return values
}

// Mean is the mean of what the trials of a cell gave for a measure, nil if it is not defined in some of them.
func (c Cell) Mean(measure string) any {
	values := c.Values(measure)
	if values == nil {
		return nil
	}
	return EstimateOf(values).Mean
}

// Expected is what is expected of a measure, and whether anything is.
func (c Cell) Expected(measure string) (Expectation, bool) {
	if c.Expect == nil {
		return Expectation{}, false
	}
	list := c.Expect(c.Point)
	k := slices.IndexFunc(list, func(x Expectation) bool { return x.Measure == measure })
	if k < 0 {
		return Expectation{}, false
	}
	return list[k], true
}

// Verdict is that on all measures of which something is expected: Differs where one does, and Equal where all are.
func (c Cell) Verdict() Verdict {
	all := Equal
	for _, x := range c.Expect(c.Point) {
		switch v := x.Verdict(c.Values(x.Measure)); v {
		case Equal:
		case Differs:
			return v
		default:
			all = v
		}
	}
	return all
}

// keys are the columns that name a cell, and key is what c has there.
func (r *Results) keys() []Column {
	return Columns(append(slices.Clone(r.plan.Labels), r.plan.Sweep)...)
}

func (c Cell) key() (row []any) {
	for _, l := range c.Labels {
		row = append(row, l)
	}
	return append(row, c.Point)
}

// Compare makes a table of each measure of each cell, beside what was expected of it.
func (r *Results) Compare(name, title string) Table {
	t := Table{
		Name: name, Title: title, Detail: true,
		Columns: append(r.keys(), Columns("measure", "trials", "measured", "half_width=+-",
			"least", "most", "formula", "published", "verdict")...),
	}
	for _, c := range r.Cells() {
		for _, m := range r.plan.Measures {
			values := c.Values(m.Name)
			x, judged := c.Expected(m.Name)
			if values == nil && !judged {
				continue
			}
			t.Add(append(append(c.key(), m.Name, len(c.Samples)), x.compare(values, judged)...)...)
		}
	}
	return t
}

func (x Expectation) compare(values []float64, judged bool) []any {
	var measured, half, least, most any
	if values != nil {
		e := EstimateOf(values)
		if measured = e.Mean; e.N > 1 {
			half = e.Half
		}
	}
	verdict := Verdict("")
	if judged {
		least, most, verdict = finite(x.Least), finite(x.Most), x.Verdict(values)
	}
	return []any{measured, half, least, most, x.Formula, x.Published, verdict}
}

// finite is v, or nothing where there is no bound.
func finite(v float64) any {
	if math.IsInf(v, 0) {
		return nil
	}
	return v
}

// Replications makes a table of what each trial gave, by seed.
func (r *Results) Replications() Table {
	t := Table{
		Name: "replications", Title: "What each trial gave", Detail: true,
		Columns: slices.Concat(r.keys(), Columns("seed"), r.plan.Measures),
	}
	for _, c := range r.Cells() {
		for seed, s := range c.Samples {
			row := append(c.key(), seed+1)
			for _, m := range r.plan.Measures {
				if v, ok := s.Values[m.Name]; ok {
					row = append(row, v)
				} else {
					row = append(row, nil)
				}
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}
