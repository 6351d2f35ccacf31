package classics

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/lab"
)

// shown is the number of processes of the table for people: a projective plane.
const shown = 21

func reportCosts(r *lab.Results) lab.Report {
	measured := r.Compare("measures", "every measure, beside what was expected")
	return lab.Report{
		Tables: []lab.Table{measured, costsAt(r, shown), publishedTable(r), contention(r), agreement(r)},
		Notes: []string{
			"low: one user at a time; high: all try for ever; both with a constant delay, which is a hop.",
			"random: as high, with exponential delays; means over the seeds, with no formula to meet.",
			"Sigma has clients: N is the number of its servers, and three clients try; in a crowd N clients.",
		},
		Figures: []lab.Figure{messagesFigure(r)},
	}
}

// forms are all that were measured, in the order of the catalog.
func forms(r *lab.Results) (list [][2]string) {
	for _, c := range r.Cells() {
		f := [2]string{c.Labels[0], c.Labels[1]}
		if !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// costsAt is the comparison for n processes: messages and hops without contention, and
// the rest with it.
func costsAt(r *lab.Results, n int) lab.Table {
	t := lab.Table{
		Name: "costs",
		Title: fmt.Sprintf("Costs of an entry for N=%d: messages to enter, and to enter and exit, hops to enter, integers a\n"+
			"message, accesses to registers, one user at a time; synchronization delay and messages under load;\n"+
			"and with random delays messages, Jain's index, and how often one is overtaken. Formulas are below", n),
		Columns: lab.Columns("algorithm", "variant"),
	}
	columns := []struct{ load, measure, head string }{
		{low, "to_enter", "enter"},
		{low, "messages", "+ exit"},
		{low, "waiting", "hops"},
		{low, "integers", "integers"},
		{low, "accesses", "accesses"},
		{high, "sync_delay", "sync"},
		{high, "messages", "load"},
		{random, "messages", "random"},
		{random, "jain", "Jain"},
		{random, "bypass", "bypass"},
	}
	for _, c := range columns {
		name := c.load + "_" + c.measure
		t.Columns = append(t.Columns, lab.Columns(name+"="+c.head, name+"_formula=")...)
	}
	for _, f := range forms(r) {
		row := []any{f[0], f[1]}
		for _, c := range columns {
			var mean, formula any
			if cell, tried := r.At(n, f[0], f[1], c.load); tried {
				mean = cell.Mean(c.measure)
				if x, judged := cell.Expected(c.measure); judged {
					formula = x.Formula
				}
			}
			row = append(row, mean, formula)
		}
		t.Rows = append(t.Rows, row)
	}
	return withoutEmptyColumns(t)
}

func withoutEmptyColumns(t lab.Table) lab.Table {
	for k := len(t.Columns) - 1; k >= 0; k-- {
		empty := !slices.ContainsFunc(t.Rows, func(row []any) bool { return row[k] != nil && row[k] != "" })
		if !empty {
			continue
		}
		t.Columns = slices.Delete(t.Columns, k, k+1)
		for i := range t.Rows {
			t.Rows[i] = slices.Delete(t.Rows[i], k, k+1)
		}
	}
	return t
}

// published is the comparison table of the lecture, row by row.
var published = []struct {
	row         string
	algorithms  []string
	both, enter string // messages to enter and exit; to enter
	// of are these formulas for n processes; nil: they are no numbers.
	of func(n float64) (both, enter float64)
}{
	{
		"permission-based centralized",
		[]string{"centralised"},
		"3", "2",
		func(float64) (float64, float64) { return 3, 2 },
	},
	{
		"Ricart Agrawala",
		[]string{"ricart-agrawala"},
		"2(N-1)", "2(N-1)",
		func(n float64) (float64, float64) { return 2 * (n - 1), 2 * (n - 1) },
	},
	{"token-based decentralized", []string{"token-ring"}, "1 .. infinity", "0 .. N-1", nil},
	{
		"Maekawa",
		[]string{"maekawa-basic", "maekawa"},
		"3 sqrt(N)", "2 sqrt(N)",
		func(n float64) (float64, float64) { return 3 * math.Sqrt(n), 2 * math.Sqrt(n) },
	},
}

// planes are the numbers of processes that a projective plane has, of those measured.
var planes = []int{7, 13, 21, 31, 57}

func publishedTable(r *lab.Results) lab.Table {
	t := lab.Table{
		Name:  "published",
		Title: "The lecture's table, with what was measured without contention beside it",
		Columns: lab.Columns(
			"row", "algorithm", "variant", "N", "enter_exit=enter + exit", "enter_exit_published=slides",
			"enter_exit_value=that is", "enter", "enter_published=slides", "enter_value=that is",
		),
	}
	for _, p := range published {
		for _, f := range forms(r) {
			if !slices.Contains(p.algorithms, f[0]) {
				continue
			}
			for _, n := range planes {
				c, tried := r.At(n, f[0], f[1], low)
				if !tried {
					continue
				}
				var both, enter any
				if p.of != nil {
					both, enter = p.of(float64(n))
				}
				t.Add(p.row, f[0], f[1], n, c.Mean("messages"), p.both, both, c.Mean("to_enter"), p.enter, enter)
			}
		}
	}
	return t
}

// contention is Sigma beside Maekawa's algorithm, with as many who contend as there are
// members.
func contention(r *lab.Results) lab.Table {
	t := lab.Table{
		Name:  "contention",
		Title: "Sigma beside Maekawa, with N members or servers and N who try for ever: an entry with constant and with random delays",
		Columns: lab.Columns(
			"N", "algorithm", "variant", "messages", "sync_delay=sync", "random_messages=messages, random",
			"random_sync_delay=sync, random", "random_jain=Jain", "random_bypass=max bypass",
		),
	}
	forms := []struct{ algorithm, variant, constant, random string }{
		{"maekawa", "", high, random},
		{"sigma", "", crowd, crowdRandom},
		{"sigma", "literal", crowd, crowdRandom},
	}
	for _, n := range planes {
		for _, f := range forms {
			c, tried := r.At(n, f.algorithm, f.variant, f.constant)
			chance, both := r.At(n, f.algorithm, f.variant, f.random)
			if tried && both {
				t.Add(n, f.algorithm, f.variant, c.Mean("messages"), c.Mean("sync_delay"), chance.Mean("messages"),
					chance.Mean("sync_delay"), chance.Mean("jain"), chance.Mean("bypass"))
			}
		}
	}
	return t
}

// agreement counts, for each formula, the sizes at which it was met.
func agreement(r *lab.Results) lab.Table {
	t := lab.Table{
		Name:    "verdicts",
		Title:   "At how many sizes each formula is met",
		Columns: lab.Columns("algorithm", "variant", "load", "measure", "formula", "published", "sizes=", "equal", "within", "differs"),
	}
	for _, f := range forms(r) {
		for _, load := range []string{low, high, crowd} {
			for _, m := range measures {
				if row := agreementOf(r.Of(f[0], f[1], load), m.Name); row != nil {
					t.Add(append([]any{f[0], f[1], load, m.Head}, row...)...)
				}
			}
		}
	}
	return t
}

// agreementOf is the rest of a row for the cells of one configuration, nil where nothing
// was expected of the measure.
func agreementOf(cells []lab.Cell, measure string) []any {
	counts := map[lab.Verdict]int{}
	var sizes []int
	var formula, published string
	for _, c := range cells {
		x, judged := c.Expected(measure)
		if !judged {
			continue
		}
		formula, published = x.Formula, x.Published
		sizes = append(sizes, c.Point)
		counts[x.Verdict(c.Values(measure))]++
	}
	if sizes == nil {
		return nil
	}
	return []any{formula, published, ranges(sizes), counts[lab.Equal], counts[lab.Within], counts[lab.Differs]}
}

// ranges writes ascending numbers such as "3-7, 9, 12-14".
func ranges(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		part := fmt.Sprint(list[i])
		if k > i {
			part += fmt.Sprintf("-%d", list[k])
		}
		parts = append(parts, part)
		i = k + 1
	}
	return strings.Join(parts, ", ")
}

// messagesFigure shows messages an entry without contention over the size, of the default
// forms and of those variants that cost something else.
func messagesFigure(r *lab.Results) lab.Figure {
	f := lab.Figure{Title: "Messages to enter and exit, one user at a time", X: "processes", Y: "messages an entry"}
	for _, form := range forms(r) {
		line := lab.Line{Name: strings.TrimSpace(form[0] + " " + form[1])}
		for _, c := range r.Of(form[0], form[1], low) {
			if v, ok := c.Mean("messages").(float64); ok && v > 0 {
				line.Points = append(line.Points, [2]float64{float64(c.Point), v})
			}
		}
		same := func(l lab.Line) bool {
			return strings.HasPrefix(line.Name, l.Name) && slices.Equal(l.Points, line.Points)
		}
		if line.Points != nil && !slices.ContainsFunc(f.Lines, same) {
			f.Lines = append(f.Lines, line)
		}
	}
	return f
}
