package tokengme

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/lab"
)

// A finding is what was found about a claim.
type finding struct {
	ours    string
	verdict lab.Verdict // "" where it was not tried
	rests   []place     // all that it rests on
	among   int         // of so many points chance may have chosen these
	decides []place     // what of that decides: the point, where one is judged; else what speaks against the claim
}

// A judge says what was found with some evidence about figures: all of them must have been tried.
type judge struct {
	figures []string
	find    func(e evidence) finding
}

// nothing is what is found where a point was not tried.
var nothing = finding{ours: "not tried at this scale"}

func show(r lab.Ratio) string { return fmt.Sprintf("%.3f +- %.3f", r.Mean, r.Half) }

// percent writes by how much a ratio differs from 1.
func percent(e lab.Estimate) string {
	return fmt.Sprintf("%+.1f +- %.1f %%", 100*(e.Mean-1), 100*e.Half)
}

func (p point) where() string { return fmt.Sprintf("%s x=%d", p.figure, p.x) }

// beyond reports whether a ratio is above 1 (up) or below it, with its whole interval.
func beyond(r lab.Ratio, up bool) bool {
	if up {
		return r.Least() > 1
	}
	return r.Most() < 1
}

// slack is how far a measured percentage may be from the printed one. Its interval does not
// count: a wide one must not help.
const slack = 5

// changed judges by how many percent a ratio differs from 1: reproduced within five points of
// what is printed and on its side of 1, partly if only on that side, both beyond the interval.
func changed(r lab.Ratio, printed float64) lab.Verdict {
	switch {
	case !beyond(r, printed > 0):
		return lab.NotReproduced
	case math.Abs(100*(r.Mean-1)-printed) <= slack:
		return lab.Reproduced
	}
	return lab.Partly
}

func places(points []point) (list []place) {
	for _, p := range points {
		list = append(list, place{p})
	}
	return list
}

// one is the finding that rests on one point, which was chosen among so many.
func one(text string, v lab.Verdict, p point, among int) finding {
	return finding{ours: text, verdict: v, rests: []place{{p}}, among: among, decides: []place{{p}}}
}

// by judges a percentage at a point.
func by(name, measure string, x int, printed float64) judge {
	return judge{[]string{name}, func(e evidence) finding {
		p, known := e.point(name, measure, x)
		if !known {
			return nothing
		}
		return one(percent(p.Estimate), changed(p.Ratio, printed), p, 1)
	}}
}

// best judges the percentage at the best point of figures: the one with the lowest ratio
// where the printed one is negative, otherwise with the highest.
func best(measure string, printed float64, names ...string) judge {
	return judge{names, func(e evidence) finding {
		list := e.all(measure, names...)
		if len(list) == 0 {
			return nothing
		}
		p := slices.MinFunc(list, func(a, b point) int {
			if printed > 0 {
				a, b = b, a
			}
			return cmp.Compare(a.Mean, b.Mean)
		})
		return one(fmt.Sprintf("%s, at %s", percent(p.Estimate), p.where()), changed(p.Ratio, printed), p, len(list))
	}}
}

// value judges a ratio at a point: reproduced between least and most, partly if it is on the same
// side of 1, beyond its interval.
func value(name, measure string, x int, least, most float64) judge {
	return judge{[]string{name}, func(e evidence) finding {
		p, known := e.point(name, measure, x)
		switch {
		case !known:
			return nothing
		case least <= p.Mean && p.Mean <= most:
			return one(show(p.Ratio), lab.Reproduced, p, 1)
		case least > 1 && beyond(p.Ratio, true), most < 1 && beyond(p.Ratio, false):
			return one(show(p.Ratio), lab.Partly, p, 1)
		}
		return one(show(p.Ratio), lab.NotReproduced, p, 1)
	}}
}

// swapped judges the same of RA2 over TokenGME.
func swapped(j judge) judge {
	return judge{j.figures, func(e evidence) finding {
		e.swapped = true
		return j.find(e)
	}}
}

// trend judges whether a ratio goes one way over a figure: reproduced if it does from the
// first to the last point, and at no step the other way, beyond the intervals; partly if
// only from the first to the last.
func trend(name, measure string, up bool) judge {
	return judge{[]string{name}, func(e evidence) finding {
		list := e.all(measure, name)
		if len(list) < 2 {
			return nothing
		}
		// rises reports whether b is above a, or below where the claim is that it falls.
		rises := func(a, b point) bool {
			if up {
				return b.Least() > a.Most()
			}
			return b.Most() < a.Least()
		}
		first, last := list[0], list[len(list)-1]
		f := finding{
			ours:    fmt.Sprintf("from %s at %d to %s at %d", show(first.Ratio), first.x, show(last.Ratio), last.x),
			verdict: lab.Reproduced, rests: places(list), among: len(list),
		}
		if !rises(first, last) {
			f.verdict, f.decides = lab.NotReproduced, []place{{first, last}}
			return f
		}
		for i, p := range list[1:] {
			if before := list[i]; rises(p, before) {
				f.verdict, f.decides = lab.Partly, append(f.decides, place{before, p})
				f.ours += fmt.Sprintf(", but %s at %d and %s at %d", show(before.Ratio), before.x, show(p.Ratio), p.x)
			}
		}
		return f
	}}
}

// everywhere judges whether ratios are above 1 (up) or below it, beyond their intervals: a tie is
// neither. Reproduced if all are, partly if most are.
func everywhere(measure string, up bool, except func(point) bool, names ...string) judge {
	return judge{names, func(e evidence) finding {
		var ties, worse []string
		f := overall(e.all(measure, names...), except, func(p point) bool {
			switch {
			case beyond(p.Ratio, up):
				return true
			case p.Covers(1):
				ties = append(ties, p.where())
			default:
				worse = append(worse, p.where())
			}
			return false
		})
		if ties != nil {
			f.ours += ", a tie at " + strings.Join(ties, ", ")
		}
		if worse != nil {
			f.ours += ", the other way round at " + strings.Join(worse, ", ")
		}
		return f
	}}
}

// between judges whether ratios lie between least and most: reproduced if all do, partly if
// most do.
func between(measure string, least, most float64, names ...string) judge {
	return judge{names, func(e evidence) finding {
		var outside []string
		f := overall(e.all(measure, names...), nil, func(p point) bool {
			in := least <= p.Mean && p.Mean <= most
			if !in {
				outside = append(outside, p.where())
			}
			return in
		})
		if outside != nil {
			f.ours += ", outside at " + strings.Join(outside, ", ")
		}
		return f
	}}
}

// overall judges all points but for exceptions.
func overall(list []point, except, fine func(point) bool) finding {
	list = slices.DeleteFunc(list, func(p point) bool { return except != nil && except(p) })
	if len(list) == 0 {
		return nothing
	}
	f := finding{rests: places(list), among: len(list)}
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range list {
		low, high = min(low, p.Mean), max(high, p.Mean)
		if !fine(p) {
			f.decides = append(f.decides, place{p})
		}
	}
	f.ours = fmt.Sprintf("%.3f to %.3f at %d points", low, high, len(list))
	switch {
	case f.decides == nil:
		f.verdict = lab.Reproduced
	case 2*len(f.decides) < len(list):
		f.verdict = lab.Partly
	default:
		f.verdict = lab.NotReproduced
	}
	return f
}

// small reports whether a point is one of those where the text makes an exception.
func small(p point) bool { return p.figure == "fig6a" && p.x == 2 || p.figure == "fig6f" && p.x < 10 }

// together judges by how many percent waiting falls where throughput grows most.
func together(less, more float64, names ...string) judge {
	return judge{names, func(e evidence) finding {
		list := e.all(throughput, names...)
		if len(list) == 0 {
			return nothing
		}
		p := slices.MaxFunc(list, func(a, b point) int { return cmp.Compare(a.Mean, b.Mean) })
		w, _ := e.point(p.figure, waiting, p.x)
		f := finding{
			ours:    fmt.Sprintf("waiting %s, throughput %s, at %s", percent(w.Estimate), percent(p.Estimate), p.where()),
			verdict: lab.Partly, rests: []place{{w}, {p}}, among: 2 * len(list), decides: []place{{w}, {p}},
		}
		a, b := changed(w.Ratio, less), changed(p.Ratio, more)
		switch {
		case a == lab.Reproduced && b == lab.Reproduced:
			f.verdict = lab.Reproduced
		case a == lab.NotReproduced || b == lab.NotReproduced:
			f.verdict = lab.NotReproduced
		}
		return f
	}}
}
