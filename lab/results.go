package lab

import (
	"math"
	"slices"
)

// Results are the samples of a plan.
type Results struct {
	plan    Plan
	samples []Sample // in the order of trials
	first   []int    // for each configuration the index of its first sample
}

// A trial is one configuration at one point with one seed.
type trial struct {
	index, configuration, point int
	seed                        uint64
}

func newResults(p Plan) *Results {
	r := &Results{plan: p}
	n := 0
	for _, c := range p.Configurations {
		r.first = append(r.first, n)
		n += len(c.Points) * c.Replications
	}
	r.samples = make([]Sample, n)
	return r
}

// trials lists all of them by configuration, point and seed, which is the order of
// samples. It begins with the last point of each configuration, which takes longest:
// then the end is not spent waiting for one of those.
func (r *Results) trials() []trial {
	var list []trial
	for k, c := range r.plan.Configurations {
		i := r.first[k]
		for _, point := range c.Points {
			for seed := range c.Replications {
				list = append(list, trial{i, k, point, uint64(seed) + 1})
				i++
			}
		}
	}
	slices.SortStableFunc(list, func(a, b trial) int { return b.point - a.point })
	return list
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
	n := c.Replications
	for i, point := range c.Points {
		from := r.first[k] + i*n
		cells = append(cells, Cell{c, point, r.samples[from : from+n]})
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

// comparison are the columns of Compare behind those of the labels and of the sweep.
var comparison = []Column{
	{"measure", "measure"},
	{"trials", "trials"},
	{"measured", "measured"},
	{"half_width", "+-"},
	{"least", "least"},
	{"most", "most"},
	{"formula", "formula"},
	{"published", "published"},
	{"verdict", "verdict"},
}

// Compare makes a table of each measure of each cell, beside what was expected of it.
func (r *Results) Compare(name, title string) Table {
	t := Table{Name: name, Title: title, Detail: true}
	for _, l := range r.plan.Labels {
		t.Columns = append(t.Columns, Column{l, l})
	}
	t.Columns = append(append(t.Columns, Column{r.plan.Sweep, r.plan.Sweep}), comparison...)
	for _, c := range r.Cells() {
		expected := map[string]Expectation{}
		if c.Expect != nil {
			for _, x := range c.Expect(c.Point) {
				expected[x.Measure] = x
			}
		}
		for _, m := range r.plan.Measures {
			values := c.Values(m.Name)
			x, judged := expected[m.Name]
			if values == nil && !judged {
				continue
			}
			var row []any
			for _, l := range c.Labels {
				row = append(row, l)
			}
			t.Add(append(append(row, c.Point, m.Name, len(c.Samples)), x.compare(values, judged)...)...)
		}
	}
	return t
}

// compare is the rest of a row.
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
