package wme

import (
	"context"
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/algo/statemachine"
	weak "github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/protocol"
)

// Table1 counts steps and messages of each thing that a user does, beside their formulas.
var Table1 = lab.Experiment{
	Name:  "wme/table1",
	Title: "what a section and an operation cost by weak mutual exclusion, and by consensus for each command",
	Plan:  func(lab.Scale) lab.Plan { return table1(rows) },
	Least: 2,
	Most:  64,
}

// sizes are those of the plan, at every scale.
var sizes = []int{2, 3, 4, 5, 6, 7, 8, 9}

// An action is something that a user does, and until when its steps are counted. Messages are counted to the last.
type action struct {
	name string
	story
	is    func(d deed) bool
	steps func(d deed) int
}

var (
	alone   = story{users: 1, entries: 2}
	working = story{users: 1, entries: 1, operations: 1}
	queue   = story{users: 2, entries: 2}
)

func answered(d deed) int { return d.answered }

// Process 0 has the token at the start, and coordinates where somebody does: it is not who acts.
var (
	enterHeld = action{"enter, token held", alone, entersAgain, answered}
	enterIdle = action{"enter, token idle elsewhere", alone, entersFirst, answered}
	exitAlone = action{"exit, nobody waits", alone, leaves, answered}
	exitWait  = action{"exit, somebody waits", queue, handsOver, answered}
	handOver  = action{"exit, until the waiter enters", queue, handsOver, func(d deed) int { return d.entered }}
	outcome   = action{"invoke, to the outcome", working, issues, answered}
	lastCopy  = action{"invoke, to the last replica", working, issues, func(d deed) int { return d.executed }}
)

func entersAgain(d deed) bool { return d.kind == protocol.Try && !d.first }
func entersFirst(d deed) bool { return d.kind == protocol.Try && d.first }
func leaves(d deed) bool      { return d.kind == protocol.Exit && !d.wait }
func handsOver(d deed) bool   { return d.kind == protocol.Exit && d.wait && d.who != 0 }
func issues(d deed) bool      { return d.kind == protocol.Issue }

// A formula is a cost as one writes it.
type formula struct {
	text string
	of   func(n int) int
}

func always(k int) formula { return formula{fmt.Sprint(k), func(int) int { return k }} }

// but is k, and instead at the sizes from least to most.
func but(k, instead, least, most int, text string) formula {
	return formula{fmt.Sprintf("%d; %d if %s", k, instead, text), func(n int) int {
		if least <= n && n <= most {
			return instead
		}
		return k
	}}
}

func times(k int) formula {
	text := "N-1"
	if k > 1 {
		text = fmt.Sprintf("%d(N-1)", k)
	}
	return formula{text, func(n int) int { return k * (n - 1) }}
}

var (
	everybody = formula{"N^2-1", func(n int) int { return n*n - 1 }}
	allToAll  = formula{"(N-1)(N+2)", func(n int) int { return (n - 1) * (n + 2) }}
)

// A row is what one action costs by one protocol: as it should, and as the paper has it.
type row struct {
	protocol string
	watch    func(n int, s story) ([]deed, error)
	action
	stepsOf, messagesOf       formula
	paperSteps, paperMessages string
}

// rows are those of Table 1, with each of its cells taken apart.
var rows = func() (list []row) {
	add := func(name string, watch func(int, story) ([]deed, error), rows ...row) {
		for _, r := range rows {
			r.protocol, r.watch = name, watch
			list = append(list, r)
		}
	}
	token := []row{
		{action: enterHeld, stepsOf: always(0), messagesOf: always(0), paperSteps: "0", paperMessages: "0"},
		{action: enterIdle, stepsOf: always(2), messagesOf: times(2), paperSteps: "2", paperMessages: "O(N)"},
		{action: exitAlone, stepsOf: always(0), messagesOf: always(0), paperSteps: "0", paperMessages: "0"},
		{action: exitWait, stepsOf: always(0), messagesOf: times(1), paperSteps: "0", paperMessages: "O(N)"},
		{action: handOver, stepsOf: always(1), messagesOf: times(1)},
	}
	add("wme-1", watching(weak.First), append(token,
		row{action: outcome, stepsOf: always(2), messagesOf: everybody, paperSteps: "2", paperMessages: "O(N^2)"},
		row{action: lastCopy, stepsOf: always(2), messagesOf: everybody, paperSteps: "2", paperMessages: "O(N^2)"},
	)...)
	add("wme-2", watching(weak.Second), append(token,
		row{action: outcome, stepsOf: always(2), messagesOf: times(3), paperSteps: "3", paperMessages: "O(N)"},
		row{action: lastCopy, stepsOf: always(3), messagesOf: times(3), paperSteps: "3", paperMessages: "O(N)"},
	)...)
	commands := func(steps, last, hand, messages formula, paper, order string) (list []row) {
		for _, a := range []action{enterHeld, enterIdle, exitAlone, exitWait, handOver, outcome, lastCopy} {
			r := row{action: a, stepsOf: steps, messagesOf: messages, paperSteps: paper, paperMessages: order}
			switch a.name {
			case handOver.name:
				r.stepsOf, r.paperSteps, r.paperMessages = hand, "", ""
			case lastCopy.name:
				r.stepsOf = last
			}
			list = append(list, r)
		}
		return list
	}
	add("state-machine", watching(statemachine.Algorithm), commands(
		but(3, 2, 2, 3, "N<=3"), always(3), but(3, 2, 3, 3, "N=3"), allToAll, "3", "O(N^2)")...)
	add("state-machine announced", watching(statemachine.Announced), commands(
		always(4), always(4), but(4, 3, 2, 2, "N=2"), times(4), "4", "O(N)")...)
	return list
}()

func watching[M any](a protocol.Algorithm[M]) func(int, story) ([]deed, error) {
	return func(n int, s story) ([]deed, error) { return watch(a, n, s) }
}

func table1(rows []row) lab.Plan {
	p := lab.Plan{
		Sweep: "N", Labels: []string{"protocol", "action"},
		Measures: lab.Columns("steps", "messages"),
		Report:   func(r *lab.Results) lab.Report { return report(r, rows) },
	}
	for _, r := range rows {
		p.Configurations = append(p.Configurations, lab.Configuration{
			Labels: []string{r.protocol, r.name}, Points: sizes, Setup: fmt.Sprintf("%+v, delay=%v", r.story, hop),
			Try: r.try, Expect: r.expect,
		})
	}
	return p
}

// try measures the action among n processes, each time that it happens in its story.
func (r row) try(_ context.Context, n int, _ uint64) (lab.Sample, error) {
	deeds, err := r.watch(n, r.story)
	if err != nil {
		return lab.Sample{}, err
	}
	var steps, messages []int
	for _, d := range deeds {
		switch {
		case !r.is(d):
			continue
		case r.steps(d) == never:
			return lab.Sample{}, fmt.Errorf("%s: it does not happen", r.name)
		case d.kind == protocol.Issue && d.copies != n:
			return lab.Sample{}, fmt.Errorf("%s: %d copies execute it, want %d", r.name, d.copies, n)
		}
		steps, messages = append(steps, r.steps(d)), append(messages, d.messages)
	}
	if len(steps) == 0 {
		return lab.Sample{}, fmt.Errorf("%s: nobody does it", r.name)
	}
	for i := range steps {
		if steps[i] != steps[0] || messages[i] != messages[0] {
			return lab.Sample{}, fmt.Errorf("%s: not always the same: %d steps, %d messages", r.name, steps, messages)
		}
	}
	return lab.Sample{Values: map[string]float64{"steps": float64(steps[0]), "messages": float64(messages[0])}}, nil
}

func (r row) expect(n int) []lab.Expectation {
	return []lab.Expectation{
		lab.Exactly("steps", float64(r.stepsOf.of(n)), r.stepsOf.text, r.paperSteps),
		lab.Exactly("messages", float64(r.messagesOf.of(n)), r.messagesOf.text, r.paperMessages),
	}
}

// report has a table with a row for each count, and the same for people, with a row for each formula.
func report(r *lab.Results, rows []row) lab.Report {
	counts := lab.Table{
		Name: "counts", Title: "Each count, beside its formula", Detail: true,
		Columns: lab.Columns("protocol", "action", "n", "steps", "messages", "steps_formula", "messages_formula",
			"steps_paper", "messages_paper", "steps_verdict", "messages_verdict"),
	}
	formulas := lab.Table{
		Name: "formulas",
		Columns: lab.Columns("protocol", "action", "steps_formula=steps", "steps_paper=paper", "messages_formula=messages",
			"messages_paper=paper", "steps=steps measured", "messages=messages measured", "agree"),
	}
	figure := lab.Figure{Title: "Messages of one operation", X: "processes", Y: "messages"}
	var points []string
	for _, w := range rows {
		var steps, messages []string
		agree := lab.Equal
		line := lab.Line{Name: w.protocol}
		points = nil
		for _, c := range r.Of(w.protocol, w.name) {
			if v := c.Verdict(); v != lab.Equal {
				agree = v
			}
			row := []any{
				w.protocol, w.name, c.Point, c.Mean("steps"), c.Mean("messages"),
				w.stepsOf.text, w.messagesOf.text, said(w.paperSteps), said(w.paperMessages),
			}
			for _, x := range c.Expect(c.Point) {
				row = append(row, x.Verdict(c.Values(x.Measure)))
			}
			counts.Rows = append(counts.Rows, row)
			steps, messages = append(steps, fmt.Sprint(row[3])), append(messages, fmt.Sprint(row[4]))
			points = append(points, fmt.Sprint(c.Point))
			line.Points = append(line.Points, [2]float64{float64(c.Point), row[4].(float64)})
		}
		formulas.Add(w.protocol, w.name, w.stepsOf.text, said(w.paperSteps), w.messagesOf.text, said(w.paperMessages),
			strings.Join(steps, " "), strings.Join(messages, " "), string(agree))
		if w.name == outcome.name {
			figure.Lines = append(figure.Lines, line)
		}
	}
	formulas.Title = "Steps and messages, measured with N = " + strings.Join(points, ", ")
	return lab.Report{
		Tables:  []lab.Table{counts, formulas},
		Figures: []lab.Figure{figure},
		Notes: []string{
			"A step is the delay of a message; one to oneself is none. All messages between distinct processes count.",
			"Who acts neither coordinates nor has the token at the start; of two processes the waiter does.",
			"With state-machine and N<=3 a process and the coordinator are a majority: it need not wait for others.",
			"The paper has WME-2 invoke in 3 steps, which is to the last replica; its user has the outcome after 2.",
		},
	}
}

// said is a cell of what the paper says, if it says something.
func said(text string) any {
	if text == "" {
		return nil
	}
	return text
}
