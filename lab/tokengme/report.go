package tokengme

import (
	"fmt"
	"math"
	"slices"

	"github.com/poundlock/poundlock/lab"
)

// A study is what came out of some figures.
type study struct {
	scale   lab.Scale
	results *lab.Results
	figures []figure
}

func (s study) report() lab.Report {
	r := lab.Report{Tables: []lab.Table{s.ratios()}}
	for _, f := range s.figures {
		r.Tables = append(r.Tables, s.table(f))
		r.Figures = append(r.Figures, s.drawing(f))
	}
	r.Tables = append(r.Tables, s.pairing(), s.claims(), s.choices(), s.results.Replications())
	p := base(s.scale)
	r.Notes = []string{
		fmt.Sprintf("%d requests a process, %d to %d replications with the same seeds for all forms; 1 unit of time is 1 ms; %d kbit/ms.",
			p.requests, p.replications, max(p.replications, p.most), bandwidth),
		fmt.Sprintf("Ratios of means, with 95 %% intervals. There are more replications until those of waiting and throughput are within %g %%.",
			100*p.precision),
	}
	return r
}

// ratios has each ratio of each figure, of all forms of the one side against the first of the
// other side.
func (s study) ratios() lab.Table {
	t := lab.Table{
		Name: "ratios", Title: "Ratios", Detail: true,
		Columns: lab.Columns("figure", "x", "of", "by", "measure", "replications", "ratio", "half_width", "removed",
			"mean_of", "mean_by"),
	}
	for _, f := range s.figures {
		for _, c := range f.comparisons() {
			for _, x := range f.pointsOf(s.scale) {
				for _, m := range measures {
					if r, known := f.ratio(s.results, x, m.Name, c); known {
						t.Add(f.name, x, c.over.name, c.under.name, m.Name, r.N, r.Mean, r.Half, r.Removed, r.Over, r.Under)
					}
				}
			}
		}
	}
	return t
}

// comparisons are the figure's own, and those with one choice changed.
func (f figure) comparisons() []comparison {
	list := []comparison{f.compared("")}
	for _, o := range f.others {
		list = append(list, f.compared(o.name))
	}
	return list
}

func (s study) table(f figure) lab.Table {
	t := lab.Table{Name: f.name, Title: f.title, Columns: lab.Columns("x="+f.x, "replications")}
	shown := slices.Concat(four, lab.Columns(throughput90+"=throughput to 90 %"))
	for _, m := range shown {
		t.Columns = append(t.Columns, m, lab.Column{Name: m.Name + "_half_width", Head: "+-"})
	}
	for _, x := range f.pointsOf(s.scale) {
		row := []any{x, nil}
		for _, m := range shown {
			ratio, known := f.ratio(s.results, x, m.Name, f.compared(""))
			if !known {
				row = append(row, nil, nil)
				continue
			}
			row[1] = ratio.N
			row = append(row, rounded(ratio.Mean), rounded(ratio.Half))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// rounded has four digits behind the point.
func rounded(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// pairing says which part of the variance of ratios the common random numbers remove.
func (s study) pairing() lab.Table {
	t := lab.Table{
		Name:    "pairing",
		Title:   "The part of the variance of each ratio that pairing removes, the median over the points",
		Columns: append(lab.Columns("figure"), four...),
	}
	for _, f := range s.figures {
		row := []any{f.name}
		for _, m := range four {
			var parts []float64
			for _, p := range s.own().all(m.Name, f.name) {
				if p.Half > 0 {
					parts = append(parts, p.Removed)
				}
			}
			if parts == nil {
				row = append(row, nil)
				continue
			}
			slices.Sort(parts)
			row = append(row, rounded(parts[len(parts)/2]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// drawing is a figure in the form of the paper: four ratios, and what the text says of them.
func (s study) drawing(f figure) lab.Figure {
	out := lab.Figure{Name: f.name, Title: f.title, X: f.x, Y: "ratio", Linear: true}
	points := f.pointsOf(s.scale)
	for _, m := range four {
		line := lab.Line{Name: m.Head}
		for _, p := range s.own().all(m.Name, f.name) {
			line.Points = append(line.Points, [2]float64{float64(p.x), p.Mean})
			line.Half = append(line.Half, p.Half)
		}
		if line.Points == nil {
			continue
		}
		out.Lines = append(out.Lines, line)
		for _, p := range f.printed {
			if p.measure != m.Name {
				continue
			}
			ends := []int{p.at}
			if p.at == anywhere {
				ends = []int{points[0], points[len(points)-1]}
			}
			line := lab.Line{Name: m.Head + ", printed", Printed: true}
			for _, x := range ends {
				line.Points = append(line.Points, [2]float64{float64(x), p.value})
			}
			out.Lines = append(out.Lines, line)
		}
	}
	return out
}
