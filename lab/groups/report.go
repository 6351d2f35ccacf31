package groups

import (
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/lab"
)

// report has all measures, and Sigma's throughput beside TokenGME's.
func (s scale) report(r *lab.Results) lab.Report {
	report := lab.Report{
		Tables: []lab.Table{s.table(r), s.ratios(r), r.Replications()},
		Notes: []string{
			fmt.Sprintf("%d users hold for %d T and try again at once; T is the mean delay of a message; throughput is in 1000 T.", users, hold/hop),
			"RA2 has no servers: its users are its members, each of which must be up. TokenGME, clients: its members are the servers.",
			"% writers: so many of the users are always alone inside. rooms: each request draws one, and its holders share it.",
			"at most: of messages, and of bypass where delays are equal. A verdict is on Sigma.",
		},
	}
	for _, w := range workloads {
		for _, m := range []string{throughput, messages, bypass} {
			report.Figures = append(report.Figures, s.figure(r, w, m))
		}
	}
	return report
}

func (s scale) table(r *lab.Results) lab.Table {
	t := lab.Table{
		Name: "compare", Title: "What an entry costs, and what users get",
		Columns: slices.Concat(lab.Columns("workload", "x", "delay", "servers", "algorithm"), measures,
			lab.Columns("messages_most=messages at most", "bypass_most=bypass at most", "verdict")),
	}
	for _, w := range workloads {
		for _, x := range s.points(w) {
			for _, y := range s.systems() {
				if c, tried := r.At(x, y.labels()...); tried && y.workload == w {
					t.Rows = append(t.Rows, y.row(c))
				}
			}
		}
	}
	return t
}

func (y system) row(c lab.Cell) []any {
	row := []any{c.Labels[0], c.Point, c.Labels[1], c.Labels[2], c.Labels[3]}
	for _, m := range measures {
		row = append(row, value(c, m.Name))
	}
	for _, m := range []string{messages, bypass} {
		if x, expected := c.Expected(m); expected {
			row = append(row, x.Most)
		} else {
			row = append(row, nil)
		}
	}
	return append(row, verdict(c))
}

// value is the mean of a measure, of the bypass the largest.
func value(c lab.Cell, measure string) any {
	if measure == bypass {
		return slices.Max(c.Values(measure))
	}
	return c.Mean(measure)
}

// leastRatio is how much of TokenGME's throughput Sigma has at least, where that is claimed.
const leastRatio = 0.95

func (s scale) ratios(r *lab.Results) lab.Table {
	t := lab.Table{
		Name: "throughput", Title: "Sigma's throughput, divided by that of TokenGME with clients",
		Columns: lab.Columns("workload", "x", "delay", "servers", "ratio", "half_width=+-", "least=at least", "verdict"),
	}
	for _, w := range workloads {
		for _, x := range s.points(w) {
			for _, y := range s.systems() {
				if y.workload != w || y.form != sigma {
					continue
				}
				over, tried := r.At(x, y.labels()...)
				other := system{w, y.delay, y.servers, token}
				under, both := r.At(x, other.labels()...)
				if !tried || !both {
					continue
				}
				ratio := lab.RatioOf(over.Values(throughput), under.Values(throughput))
				var least any
				v := lab.Verdict("")
				if w == rooms && y.claimed(x) {
					least, v = leastRatio, lab.Within
					if ratio.Least() < leastRatio {
						v = lab.Differs
					}
				}
				t.Add(w, x, y.delay, fmt.Sprint(y.servers), lab.Rounded(ratio.Mean), lab.Rounded(ratio.Half), least, v)
			}
		}
	}
	return t
}

// figure shows a measure with the fewest servers. Its axes are logarithmic, so that what is 0 is left out.
func (s scale) figure(r *lab.Results, workload, measure string) lab.Figure {
	heads := map[string]string{
		throughput: "entries in 1000 T", messages: "messages an entry", bypass: "largest bypass",
	}
	f := lab.Figure{
		Name:  strings.TrimPrefix(workload, "% ") + "-" + measure,
		Title: fmt.Sprintf("%d users, %d servers", users, s.servers[0]), X: workload, Y: heads[measure],
	}
	for _, d := range delays {
		for _, form := range forms {
			y := system{workload, d, s.servers[0], form}
			if form.members {
				y.servers = 0
			}
			line := lab.Line{Name: form.name + ", " + d}
			for _, c := range r.Of(y.labels()...) {
				if v, known := value(c, measure).(float64); known && v > 0 && c.Point > 0 {
					line.Points = append(line.Points, [2]float64{float64(c.Point), v})
				}
			}
			f.Lines = append(f.Lines, line)
		}
	}
	return f
}
