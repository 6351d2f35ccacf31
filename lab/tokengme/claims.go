package tokengme

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/lab"
)

// A claim is a sentence of the paper about its measurements.
type claim struct {
	section string
	text    string
	figures []string // on which it rests: all of them must have been tried
	// judge says what was found with a variant of the figures, and whether that is it.
	judge func(e evidence) (ours string, v lab.Verdict)
	// depends says on which modelling choice it depends, where that is known beforehand.
	depends string
}

// evidence is a study, seen with one choice of forms and of the measure of throughput.
type evidence struct {
	study
	choice     string // as variant.choice
	throughput string // the measure
}

// ratio is that of a measure at a point of a figure: with the choice, or without where the
// figure has it not.
func (e evidence) ratio(figureName, measure string, x int) (lab.Ratio, bool) {
	if measure == throughput {
		measure = e.throughput
	}
	f := e.of(figureName)
	v := f.variants()[0]
	for _, w := range f.variants() {
		if w.choice == e.choice {
			v = w
		}
	}
	return f.ratio(e.results, x, measure, v.of, v.by)
}

// of is the figure of this name.
func (s study) of(name string) figure {
	return s.figures[slices.IndexFunc(s.figures, func(f figure) bool { return f.name == name })]
}

// A point of a figure, with what was found there.
type point struct {
	figure string
	x      int
	lab.Ratio
}

// all are the ratios of a measure over figures; none where the choice was not tried at all of
// their points with few processes.
func (e evidence) all(measure string, names ...string) (list []point) {
	for _, name := range names {
		for _, x := range e.of(name).pointsOf(e.scale) {
			r, known := e.ratio(name, measure, x)
			switch {
			case known:
				list = append(list, point{name, x, r})
			case e.choice != "" && e.of(name).at(e.scale, x).n <= mostProcesses:
				return nil
			}
		}
	}
	return list
}

// six and five are the figures of TokenGME against RA2, and those with the base delay.
var (
	six   = []string{"fig6a", "fig6b", "fig6c", "fig6d", "fig6e", "fig6f"}
	still = []string{"fig6a", "fig6c", "fig6d", "fig6e", "fig6f"}
)

// show writes a ratio with its interval.
func show(r lab.Ratio) string { return fmt.Sprintf("%.3f +- %.3f", r.Mean, r.Half) }

// less writes how much less than 1 a ratio is, in percent.
func less(r lab.Ratio) string { return fmt.Sprintf("%+.1f +- %.1f %%", 100*(r.Mean-1), 100*r.Half) }

// meets reports whether the interval of a ratio meets [least, most].
func meets(r lab.Ratio, least, most float64) bool { return r.Most() >= least && r.Least() <= most }

// nothing is what is said where a point was not tried.
const nothing = "not tried at this scale"

// at judges a ratio at one point: reproduced between least and most, partly on the same side
// of 1.
func at(name, measure string, x int, least, most float64) func(evidence) (string, lab.Verdict) {
	return func(e evidence) (string, lab.Verdict) {
		r, known := e.ratio(name, measure, x)
		if !known {
			return nothing, ""
		}
		switch {
		case meets(r, least, most):
			return show(r), lab.Reproduced
		case (r.Mean < 1) == (most < 1):
			return show(r), lab.Partly
		}
		return show(r), lab.NotReproduced
	}
}

// best judges the best ratio over figures, the lowest, or with up the highest: reproduced
// between least and most, partly if it is better than 1.
func best(measure string, up bool, least, most float64, names ...string) func(evidence) (string, lab.Verdict) {
	return func(e evidence) (string, lab.Verdict) {
		list := e.all(measure, names...)
		if len(list) == 0 {
			return nothing, ""
		}
		p := slices.MinFunc(list, func(a, b point) int {
			if up {
				a, b = b, a
			}
			return cmp.Compare(a.Mean, b.Mean)
		})
		ours := fmt.Sprintf("%s, at %s x=%d", less(p.Ratio), p.figure, p.x)
		switch {
		case meets(p.Ratio, least, most):
			return ours, lab.Reproduced
		case up && p.Least() > 1, !up && p.Most() < 1:
			return ours, lab.Partly
		}
		return ours, lab.NotReproduced
	}
}

// trend judges whether a ratio goes one way over a figure: reproduced if it does from the
// first to the last point, and at no step the other way, beyond the intervals; partly if
// only from the first to the last.
func trend(name, measure string, up bool) func(evidence) (string, lab.Verdict) {
	return func(e evidence) (string, lab.Verdict) {
		list := e.all(measure, name)
		if len(list) < 2 {
			return nothing, ""
		}
		// rises reports whether b is above a, or below where the claim is that it falls.
		rises := func(a, b point) bool {
			if up {
				return b.Least() > a.Most()
			}
			return b.Most() < a.Least()
		}
		first, last := list[0], list[len(list)-1]
		ours := fmt.Sprintf("from %s at %d to %s at %d", show(first.Ratio), first.x, show(last.Ratio), last.x)
		if !rises(first, last) {
			return ours, lab.NotReproduced
		}
		for i, p := range list[1:] {
			if rises(p, list[i]) {
				return fmt.Sprintf("%s, but %s at %d and %s at %d", ours, show(list[i].Ratio), list[i].x, show(p.Ratio), p.x), lab.Partly
			}
		}
		return ours, lab.Reproduced
	}
}

// mostly judges whether ratios lie between least and most, all of them, or most.
func mostly(measure string, least, most float64, except func(point) bool, names ...string) func(evidence) (string, lab.Verdict) {
	return func(e evidence) (string, lab.Verdict) {
		in, out := 0, []string(nil)
		low, high := math.Inf(1), math.Inf(-1)
		for _, p := range e.all(measure, names...) {
			if except != nil && except(p) {
				continue
			}
			low, high = min(low, p.Mean), max(high, p.Mean)
			if meets(p.Ratio, least, most) {
				in++
			} else {
				out = append(out, fmt.Sprintf("%s x=%d", p.figure, p.x))
			}
		}
		if in+len(out) == 0 {
			return nothing, ""
		}
		ours := fmt.Sprintf("%.3f to %.3f", low, high)
		switch {
		case out == nil:
			return ours, lab.Reproduced
		case in > len(out):
			return ours + ", outside at " + strings.Join(out, ", "), lab.Partly
		}
		return fmt.Sprintf("%s, outside at %d of %d points", ours, len(out), in+len(out)), lab.NotReproduced
	}
}

// small reports whether a point is one of those where the text makes an exception.
func small(p point) bool { return p.figure == "fig6a" && p.x == 2 || p.figure == "fig6f" && p.x < 10 }

// together judges whether waiting falls by 35 % where throughput grows by 39 %.
func together(e evidence) (string, lab.Verdict) {
	list := e.all(throughput, six...)
	if len(list) == 0 {
		return nothing, ""
	}
	p := slices.MaxFunc(list, func(a, b point) int { return cmp.Compare(a.Mean, b.Mean) })
	w, _ := e.ratio(p.figure, waiting, p.x)
	ours := fmt.Sprintf("waiting %s, throughput %s, at %s x=%d", less(w), less(p.Ratio), p.figure, p.x)
	switch {
	case meets(w, 0.60, 0.70) && meets(p.Ratio, 1.34, 1.44):
		return ours, lab.Reproduced
	case w.Mean < 1 && p.Mean > 1:
		return ours, lab.Partly
	}
	return ours, lab.NotReproduced
}

// The choices on which claims depend; of selection nothing is open that matters.
const (
	onAdmission  = "admission, and whom RA2 invites"
	onAccounting = "integers an entry of RA2's vector counts"
	onMakespan   = "throughput over the makespan or to 90 %"
)

// claims are those with numbers or directions, in the order of the paper. Percentages are
// reproduced within five points, ratios of sizes within a tenth or the digits that are printed.
var claims = []claim{
	{
		"abstract", "outperforms by as much as 50 % in some cases", six,
		best(waiting, false, 0.45, 0.55, six...), onAdmission,
	},
	{"4.1", "m = 2: RA2 waits around 10 % less", six[:1], at("fig6a", waiting, 2, 1.06, 1.16), onAdmission},
	{"4.1", "m = 2: RA2 has around 5 % more throughput", six[:1], at("fig6a", throughput, 2, 0.92, 0.98), onAdmission + "; " + onMakespan},
	{"4.1", "n < 10: RA2 has smaller messages; ratio 2.22 at n = 5", six[5:], at("fig6f", size, 5, 2.0, 2.45), onAccounting},
	{"4.1", "the ratio of sizes is 0.01 at n = 500", six[5:], at("fig6f", size, 500, 0.005, 0.015), onAccounting},
	{
		"4.1", "the ratio of sizes is around 0.05 in all other cases (0.04 to 0.06)", six[:5],
		mostly(size, 0.035, 0.065, nil, six[:5]...), onAccounting,
	},
	{"4.1", "smaller messages in all other cases", six, mostly(size, 0, 1, small, six...), onAccounting},
	{"4.1", "less waiting in all other cases", six, mostly(waiting, 0, 1, small, six...), onAdmission},
	{"4.1", "more throughput in all other cases", six, mostly(throughput, 1, 99, small, six...), onMakespan},
	{"4.1", "waiting falls by as much as 50 %", six, best(waiting, false, 0.45, 0.55, six...), onAdmission},
	{"4.1", "the ratio of waiting falls as the inter-request delay grows", six[1:2], trend("fig6b", waiting, false), onAdmission},
	{"4.1", "it falls as the critical section gets shorter", six[2:3], trend("fig6c", waiting, true), onAdmission},
	{"4.1", "it falls as the channel delay grows", six[3:4], trend("fig6d", waiting, false), onAdmission},
	{"4.1", "it falls as access gets more uniform", six[4:5], trend("fig6e", waiting, true), onAdmission},
	{"4.1", "it falls as processes get more", six[5:], trend("fig6f", waiting, false), onAdmission},
	{"4.1", "the ratio of throughput grows as the critical section gets shorter", six[2:3], trend("fig6c", throughput, false), onMakespan},
	{"4.1", "it grows as the channel delay grows", six[3:4], trend("fig6d", throughput, true), onMakespan},
	{"4.1", "it grows as access gets more uniform", six[4:5], trend("fig6e", throughput, false), onMakespan},
	{"4.1", "it grows as processes get more", six[5:], trend("fig6f", throughput, true), onMakespan},
	{"4.1", "it tends to 1 as the inter-request delay grows", six[1:2], at("fig6b", throughput, 4000, 0.98, 1.02), onMakespan},
	{
		"4.1", "slightly fewer messages in almost all cases but over the inter-request delay (0.9 to 1)", still,
		mostly(messages, 0.9, 1, nil, still...), onAdmission,
	},
	{
		"4.1", "messages fall by as much as 45 % as the inter-request delay grows", six[1:2],
		best(messages, false, 0.50, 0.60, "fig6b"), onAdmission,
	},
	{
		"4.2", "priority over FIFO: waiting falls by as much as 24 % as processes get more",
		[]string{"fig7a"},
		best(waiting, false, 0.71, 0.81, "fig7a"), "",
	},
	{
		"4.2", "and throughput grows by as much as 22 %",
		[]string{"fig7a"},
		best(throughput, true, 1.17, 1.27, "fig7a"), onMakespan,
	},
	{
		"4.2", "waiting falls by as much as 18 % as access gets less uniform",
		[]string{"fig7b"},
		best(waiting, false, 0.77, 0.87, "fig7b"), "",
	},
	{
		"4.2", "and throughput grows by as much as 14 %",
		[]string{"fig7b"},
		best(throughput, true, 1.09, 1.19, "fig7b"), onMakespan,
	},
	{"6", "waiting falls by as much as 35 % and throughput grows by as much as 39 % at the same time", six, together, onMakespan},
}

// judged are the claims whose figures were tried.
func (s study) judged() []claim {
	tried := func(name string) bool {
		return slices.ContainsFunc(s.figures, func(f figure) bool { return f.name == name })
	}
	return slices.DeleteFunc(slices.Clone(claims), func(c claim) bool {
		return slices.ContainsFunc(c.figures, func(name string) bool { return !tried(name) })
	})
}

// claims is the table of claims.
func (s study) claims() lab.Table {
	t := lab.Table{
		Name:  "claims",
		Title: "What the paper says, and what was found",
		Columns: []lab.Column{
			{Name: "section", Head: "section"},
			{Name: "claim", Head: "claim"},
			{Name: "ours", Head: "ours"},
			{Name: "verdict", Head: "verdict"},
			{Name: "depends", Head: "depends on"},
		},
	}
	for _, c := range s.judged() {
		ours, verdict := c.judge(evidence{s, "", throughput})
		t.Add(c.section, c.text, ours, verdict, c.depends)
	}
	return t
}

// choices is the table of claims of which another choice makes something else. Its verdicts
// do not count.
func (s study) choices() lab.Table {
	t := lab.Table{
		Name:  "choices",
		Title: "Where another choice changes the verdict",
		Columns: []lab.Column{
			{Name: "section", Head: "section"},
			{Name: "claim", Head: "claim"},
			{Name: "choice", Head: "choice"},
			{Name: "found", Head: "found"},
			{Name: "otherwise", Head: "verdict"},
		},
	}
	for _, c := range s.judged() {
		_, verdict := c.judge(evidence{s, "", throughput})
		with := func(name string, e evidence) {
			if found, other := c.judge(e); other != verdict && other != "" {
				t.Add(c.section, c.text, name, found, string(other))
			}
		}
		with("throughput to 90 %", evidence{s, "", throughput90})
		for _, v := range s.of(c.figures[0]).variants()[1:] {
			with(v.choice, evidence{s, v.choice, throughput})
		}
	}
	return t
}
