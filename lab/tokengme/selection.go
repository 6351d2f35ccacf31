package tokengme

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/lab"
)

// Selection asks what section 6 leaves to future work: whether another scheme of selection is
// better than that by priority.
var Selection = lab.Experiment{
	Name:  "tokengme/selection",
	Title: "whether a scheme of selection beats that by priority, at the points of all figures",
	Plan:  selection,
}

// rivals of selection by priority.
var rivals = []form{fifo, largest}

// swept are the figures with their points, each system once: that with the base parameters is
// in many figures, and 7(a) has those of 6(f).
func swept(s lab.Scale) (list []sweep) {
	seen := map[parameters]bool{}
	for _, f := range figures {
		if f.name == "fig6f" {
			continue
		}
		var points []int
		for _, x := range f.pointsOf(s) {
			if p := f.at(s, x); !seen[p] {
				seen[p] = true
				points = append(points, x)
			}
		}
		if points != nil {
			list = append(list, sweep{f, points})
		}
	}
	return list
}

// A sweep is a figure with some of its points.
type sweep struct {
	figure
	points []int
}

func selection(s lab.Scale) lab.Plan {
	p := lab.Plan{Sweep: "x", Labels: []string{"figure", "form"}, Measures: measures, Trials: "tokengme"}
	for _, f := range swept(s) {
		for _, form := range append([]form{token}, rivals...) {
			c := f.configuration(s, form, f.points)
			c.Most, c.Enough = 0, nil
			p.Configurations = append(p.Configurations, c)
		}
	}
	p.Report = func(r *lab.Results) lab.Report { return reportSelection(s, r) }
	return p
}

func reportSelection(s lab.Scale, r *lab.Results) lab.Report {
	points := lab.Table{
		Name: "selection", Title: "Ratios of the measures of a scheme to those of selection by priority",
		Columns: lab.Columns("scheme", "figure", "x", "waiting", "waiting_half_width=+-", "throughput", "throughput_half_width=+-"),
	}
	wins := lab.Table{
		Name: "wins", Title: "At how many points a scheme is better or worse than selection by priority, beyond the interval of the ratio",
		Columns: lab.Columns(
			"scheme", "measure", "points", "better", "neither", "worse", "best=at best", "worst=at worst",
			"better_at=better at",
		),
	}
	var notes []string
	for _, rival := range rivals {
		found := map[string][]point{}
		for _, f := range swept(s) {
			for _, x := range f.points {
				w, known := f.ratio(r, x, waiting, comparison{rival, token})
				h, _ := f.ratio(r, x, throughput, comparison{rival, token})
				if !known {
					continue
				}
				found[waiting] = append(found[waiting], point{figure: f.name, x: x, measure: waiting, Ratio: w})
				found[throughput] = append(found[throughput], point{figure: f.name, x: x, measure: throughput, Ratio: h})
				points.Add(rival.name, f.name, x, rounded(w.Mean), rounded(w.Half), rounded(h.Mean), rounded(h.Half))
			}
		}
		w, h := scoreOf(found[waiting], false), scoreOf(found[throughput], true)
		wins.Add(append([]any{rival.name, waiting}, w.cells()...)...)
		wins.Add(append([]any{rival.name, throughput}, h.cells()...)...)
		notes = append(notes, fmt.Sprintf(
			"%s waits less than priority at %d of %d points and longer at %d, and has more throughput at %d and less at %d: %s.",
			rival.name, len(w.better), w.points, w.worse, len(h.better), h.worse, answer(w, h)))
	}
	return lab.Report{Tables: []lab.Table{points, wins, r.Replications()}, Notes: notes}
}

// answer says whether a scheme beats the other one at all points.
func answer(scores ...score) string {
	at, all := 0, 0
	for _, s := range scores {
		at, all = at+len(s.better), all+s.points
	}
	switch {
	case at == 0:
		return "it beats priority nowhere"
	case at < all:
		return "it beats priority at some points, not at all"
	}
	return "it beats priority at all points"
}

// A score counts at how many points a scheme is better or worse than another one.
type score struct {
	points, worse int
	better        []string // where, with the ratio
	best, worst   any
}

// scoreOf counts at which points a ratio is better than 1, or up to more of it, and worse.
func scoreOf(list []point, up bool) score {
	s := score{points: len(list)}
	if s.points == 0 {
		return s
	}
	name := func(p point) string { return fmt.Sprintf("%s at %s", show(p.Ratio), p.where()) }
	for _, p := range list {
		switch {
		case beyond(p.Ratio, up):
			s.better = append(s.better, name(p))
		case beyond(p.Ratio, !up):
			s.worse++
		}
	}
	sorted := slices.SortedFunc(slices.Values(list), func(a, b point) int { return cmp.Compare(a.Mean, b.Mean) })
	if up {
		slices.Reverse(sorted)
	}
	s.best, s.worst = name(sorted[0]), name(sorted[len(sorted)-1])
	return s
}

func (s score) cells() []any {
	better := len(s.better)
	return []any{s.points, better, s.points - better - s.worse, s.worse, s.best, s.worst, strings.Join(s.better, ", ")}
}
