package tokengme

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/lab"
)

// A choice that the text leaves open: a form in place of one of a figure's own, or another
// measure of throughput.
type choice struct{ name, other, throughput string }

// ours is what figures show.
var ours = choice{throughput: throughput}

// choices are the others, for a claim that rests on f first.
func (f figure) choices() []choice {
	list := []choice{{"throughput to 90 %", "", throughput90}}
	for _, o := range f.others {
		list = append(list, choice{o.name, o.name, throughput})
	}
	return list
}

// evidence is a study, seen with one choice.
type evidence struct {
	study
	choice choice
	beside choice // ratios are cut to the points and the seeds of this one, too
	// swapped says that ratios are those of what stands below to what stands above.
	swapped bool
}

// own is the study as its figures show it.
func (s study) own() evidence { return evidence{study: s, choice: ours, beside: ours} }

func (s study) find(name string) figure {
	return s.figures[slices.IndexFunc(s.figures, func(f figure) bool { return f.name == name })]
}

// A point of a figure, with what was found there.
type point struct {
	figure  string
	x       int
	measure string
	swapped bool
	lab.Ratio
}

// point is a ratio at a point of a figure; false where it was not tried.
func (e evidence) point(name, measure string, x int) (point, bool) {
	p := point{figure: name, x: x, measure: measure, swapped: e.swapped}
	values, known := e.values(p, e.choice, e.beside)
	if !known {
		return p, false
	}
	over, under := values[0], values[1]
	if e.swapped {
		over, under = under, over
	}
	p.Ratio = lab.RatioOf(over, under)
	return p, true
}

// values are those over and under the line at a point, with each of two choices, for the
// seeds that are common to them.
func (s study) values(p point, a, b choice) ([][]float64, bool) {
	f := s.find(p.figure)
	with, without := f.compared(a.other), f.compared(b.other)
	list, known := f.values(s.results, p.x, a.measured(p.measure), with.over, with.under, without.over, without.under)
	if !known {
		return nil, false
	}
	others, known := f.values(s.results, p.x, b.measured(p.measure), without.over, without.under, with.over, with.under)
	if !known {
		return nil, false
	}
	return append(list[:2:2], others[:2]...), true
}

// measured is what is taken for a measure.
func (c choice) measured(measure string) string {
	if measure == throughput {
		return c.throughput
	}
	return measure
}

// A place is a point, or a step from one to another, whose ratio is that of the second to that
// of the first.
type place []point

func (p place) String() string {
	if len(p) == 1 {
		return p[0].where()
	}
	return fmt.Sprintf("%s to %d", p[0].where(), p[1].x)
}

func (p place) equal(q place) bool {
	return slices.EqualFunc(p, q, func(a, b point) bool { return a.figure == b.figure && a.x == b.x && a.measure == b.measure })
}

// change is what a choice makes of the ratio at a place, over what it is otherwise, with the
// same seeds.
func (s study) change(at place, c choice) (lab.Estimate, bool) {
	if c.other == "" && at[0].measure != throughput {
		return lab.Estimate{}, false
	}
	var over, under [][]float64
	for i, p := range at {
		v, known := s.values(p, c, ours)
		if !known {
			return lab.Estimate{}, false
		}
		rise := [][]float64{v[0], v[3]}
		fall := [][]float64{v[1], v[2]}
		if p.swapped != (i < len(at)-1) {
			rise, fall = fall, rise
		}
		over, under = append(over, rise...), append(under, fall...)
	}
	return lab.QuotientOf(over, under), true
}

// all are the ratios of a measure over figures; none where a choice was not tried at all of
// their points with few processes.
func (e evidence) all(measure string, names ...string) (list []point) {
	for _, name := range names {
		f := e.find(name)
		for _, x := range f.pointsOf(e.scale) {
			p, known := e.point(name, measure, x)
			switch {
			case known:
				list = append(list, p)
			case e.choice.other+e.beside.other != "" && f.at(e.scale, x).n <= mostProcesses:
				return nil
			}
		}
	}
	return list
}
