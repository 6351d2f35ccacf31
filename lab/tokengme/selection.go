package tokengme

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/lab"
)

// Selection asks what section 6 leaves to future work: whether another scheme of selection is
// better than that by priority.
var Selection = lab.Experiment{
	Name:  "tokengme/selection",
	Title: "whether a scheme of selection beats that by priority, at all points of all figures",
	Plan:  selection,
}

// rivals of selection by priority.
var rivals = []form{fifo, largest}

// swept are the figures whose points are tried. Figures 7 have the parameters of 6(e) and
// 6(f), and larger systems.
func swept() []figure {
	return slices.DeleteFunc(slices.Clone(figures), func(f figure) bool { return f.name == "fig6e" || f.name == "fig6f" })
}

func selection(s lab.Scale) lab.Plan {
	p := lab.Plan{Sweep: "x", Labels: []string{"figure", "form"}, Measures: measures, Trials: "tokengme"}
	for _, f := range swept() {
		for _, form := range append([]form{token}, rivals...) {
			c := f.configuration(s, form, f.pointsOf(s))
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
		Columns: []lab.Column{
			{Name: "scheme", Head: "scheme"},
			{Name: "figure", Head: "figure"},
			{Name: "x", Head: "x"},
			{Name: "waiting", Head: "waiting"},
			{Name: "waiting_half_width", Head: "+-"},
			{Name: "throughput", Head: "throughput"},
			{Name: "throughput_half_width", Head: "+-"},
		},
	}
	wins := lab.Table{
		Name: "wins", Title: "At how many points a scheme is better or worse than selection by priority, beyond the interval of the ratio",
		Columns: []lab.Column{
			{Name: "scheme", Head: "scheme"},
			{Name: "measure", Head: "measure"},
			{Name: "points", Head: "points"},
			{Name: "better", Head: "better"},
			{Name: "neither", Head: "neither"},
			{Name: "worse", Head: "worse"},
			{Name: "best", Head: "at best"},
			{Name: "worst", Head: "at worst"},
		},
	}
	for _, rival := range rivals {
		found := map[string][]point{}
		for _, f := range swept() {
			for _, x := range f.pointsOf(s) {
				w, known := f.ratio(r, x, waiting, rival, token)
				h, _ := f.ratio(r, x, throughput, rival, token)
				if !known {
					continue
				}
				found[waiting] = append(found[waiting], point{f.name, x, w})
				found[throughput] = append(found[throughput], point{f.name, x, h})
				points.Add(rival.name, f.name, x, rounded(w.Mean), rounded(w.Half), rounded(h.Mean), rounded(h.Half))
			}
		}
		for _, m := range []string{waiting, throughput} {
			wins.Add(append([]any{rival.name, m}, score(found[m], m == throughput)...)...)
		}
	}
	return lab.Report{Tables: []lab.Table{points, wins}}
}

// score counts at how many points a ratio is better than 1, or up to more of it, and worse.
func score(list []point, up bool) []any {
	better, worse := 0, 0
	for _, p := range list {
		switch {
		case p.Covers(1):
		case (p.Mean > 1) == up:
			better++
		default:
			worse++
		}
	}
	sorted := slices.SortedFunc(slices.Values(list), func(a, b point) int { return cmp.Compare(a.Mean, b.Mean) })
	if up {
		slices.Reverse(sorted)
	}
	name := func(p point) string { return fmt.Sprintf("%s at %s x=%d", show(p.Ratio), p.figure, p.x) }
	if len(list) == 0 {
		return []any{0, 0, 0, 0, nil, nil}
	}
	return []any{len(list), better, len(list) - better - worse, worse, name(sorted[0]), name(sorted[len(sorted)-1])}
}
