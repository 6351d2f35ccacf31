package classics

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/check"
)

// decided are the columns of what was decided, one row for each cell of the matrix.
var decided = lab.Columns(
	"algorithm", "variant", "under", "property", "claimed", "verdict", "comparison", "states", "bounds",
	"command", "steps", "reason", "counterexample", "note",
)

// notes say why a violation of the lecture is not found, and what order means where no
// message tells of a try.
var notes = []struct {
	algorithm, variant, column string // "*": any variant
	text                       string
}{
	{"bakery", "*", order, "by doorways: who left its doorway before another one began enters first. " +
		"Decided on the same algorithm with a history"},
	{"dijkstra", "*", order, "progress holds, so others enter again and again while one starves: " +
		"tries that began after any doorway overtake it"},
	{"centralised", "*", order, "nobody but the coordinator hears of a try, and it serves them as they arrive. " +
		"The lecture's order is that of real time, which no message tells"},
	{"token-ring", "", order, "a try sends nothing, so nobody can hear of it before it is served. " +
		"The lecture's order is that of real time"},
	{"token-ring", "bidirectional", order, "a try sends nothing, so nobody can hear of it before it is served. " +
		"The lecture's order is that of real time"},
	{"maekawa-basic", "printed-vote", noDeadlock, votes},
	{"maekawa-basic", "printed-vote", noStarvation, votes},
}

const votes = "read literally the own request takes no vote, and nobody waits for a vote that its owner has: " +
	"two are inside instead"

// noteOn is the note on a cell, "" where there is none.
func noteOn(algorithm, variant, column string) string {
	for _, n := range notes {
		if n.algorithm == algorithm && (n.variant == "*" || n.variant == variant) && n.column == column {
			return n.text
		}
	}
	return ""
}

func reportProperties(r *lab.Results) lab.Report {
	all := lab.Table{Name: "properties", Title: "What was decided", Columns: decided, Detail: true}
	matrix := lab.Table{
		Name:    "matrix",
		Title:   "What was decided, with the steps of the counterexample. ! the lecture says otherwise. [1] a note below",
		Columns: append(lab.Columns("algorithm", "variant", "under"), lab.Columns(columns...)...),
	}
	violations := lab.Table{
		Name: "violations", Title: "Counterexamples, each a file for poundlock-lab replay and a diagram",
		Columns: lab.Columns("counterexample=file", "steps", "reason=what is wrong at its end"),
	}
	report := lab.Report{Attached: map[string]string{}, Notes: []string{
		"Each verdict holds within its bounds, which are in the CSV and JSON files, with the command that decides it.",
		"order: nobody enters before a user whose try happened before its own, over the algorithm's messages.",
	}}
	var marked []string
	for _, c := range r.Cells() {
		s := c.Samples[0]
		algorithm, variant, under, column := c.Labels[0], c.Labels[1], c.Labels[2], c.Labels[3]
		found, claimed := check.Result(s.Texts["verdict"]), claimOf(algorithm, variant, under, column)
		verdict := compare(found, known(catalog.Find(algorithm, variant).Info(), under, column), claimed)
		var steps, file any
		for name, text := range s.Files {
			report.Attached[name] = text
		}
		if found == check.Violated {
			steps, file = int(s.Values["steps"]), lab.AttachedName(propertiesName, s.Texts["file"]+".txt")
			violations.Add(file, steps, s.Texts["reason"])
		}
		note := noteOn(algorithm, variant, column)
		all.Add(algorithm, variant, under, column, string(claimed), string(found), verdict,
			int(s.Values["states"]), s.Texts["bounds"], s.Texts["command"], steps, s.Texts["reason"], file, note)
		set(&matrix, []any{algorithm, variant, under}, column, cellOf(found, claimed, steps)+mark(&marked, note))
	}
	report.Tables = []lab.Table{all, matrix, violations}
	for k, note := range marked {
		report.Notes = append(report.Notes, fmt.Sprintf("[%d] %s.", k+1, note))
	}
	return report
}

// mark is the number of a note behind a cell. A note that is new is added to the list.
func mark(marked *[]string, note string) string {
	if note == "" {
		return ""
	}
	k := slices.Index(*marked, note)
	if k < 0 {
		k = len(*marked)
		*marked = append(*marked, note)
	}
	return fmt.Sprintf(" [%d]", k+1)
}

func cellOf(found, claimed check.Result, steps any) string {
	text := string(found)
	if steps != nil {
		text += fmt.Sprintf(" (%d)", steps)
	}
	if claimed != "" && found != claimed {
		text += " !"
	}
	return text
}

// set puts a cell into the row of a form, which it adds where it is missing.
func set(t *lab.Table, form []any, column string, cell string) {
	row := slices.IndexFunc(t.Rows, func(row []any) bool { return slices.Equal(row[:len(form)], form) })
	if row < 0 {
		row = len(t.Rows)
		t.Rows = append(t.Rows, append(slices.Clone(form), make([]any, len(t.Columns)-len(form))...))
	}
	t.Rows[row][slices.IndexFunc(t.Columns, func(c lab.Column) bool { return c.Name == column })] = cell
}
