package classics

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock/algo/bully"
	"github.com/poundlock/poundlock/algo/ringelection"
	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// Elections counts the messages of the bully and of the ring by kind, in the best and in
// the worst case, beside the lecture's formulas.
var Elections = lab.Experiment{
	Name:  "classics/elections",
	Title: "what an election costs, by kind of messages",
	Plan:  elections,
}

var kinds = lab.Columns("ELECTION", "OK", "COORDINATOR", "messages=all")

type count struct {
	kind    string
	of      func(n int) int
	formula string
}

// An election is one way to elect: the leader, who has the highest id, crashes or is only
// suspected, and some of the others notice.
type election struct {
	entry  catalog.Entry
	name   string
	alive  bool                 // the leader, who is suspected by mistake
	notice func(n int) []notice // processes are counted from 1
	counts []count
	// published is the lecture's number of all messages.
	published string
}

type notice struct {
	process int
	at      time.Duration
}

func at(process int) []notice { return []notice{{process, time.Second}} }

func everybody(n int) (list []notice) {
	for k := 1; k < n; k++ {
		list = append(list, notice{k, time.Second})
	}
	return list
}

// ways are the cases of the lecture, and those of the ring that differ by who notices.
func ways() []election {
	bully, ring := catalog.Of(bully.Algorithm), catalog.Of(ringelection.Algorithm)
	worst := []count{
		{"ELECTION", func(n int) int { return n * (n - 1) / 2 }, "N(N-1)/2"},
		{"OK", func(n int) int { return (n - 1) * (n - 2) / 2 }, "(N-1)(N-2)/2"},
		{"COORDINATOR", func(n int) int { return n - 2 }, "N-2"},
	}
	return []election{
		{
			bully, "best: the second highest notices", false,
			func(n int) []notice { return at(n - 1) },
			[]count{
				{"ELECTION", func(int) int { return 1 }, "1, to the dead leader"},
				{"OK", func(int) int { return 0 }, "0"},
				{"COORDINATOR", func(n int) int { return n - 2 }, "N-2"},
			},
			"N-2",
		},
		{
			bully, "worst: the lowest notices", false,
			func(int) []notice { return at(1) },
			worst, "N(N-1)/2 + N-1",
		},
		{bully, "all notice at once", false, everybody, worst, "N(N-1)/2 + N-1"},
		{
			ring, "the leader lives, and is suspected", true,
			func(int) []notice { return at(1) },
			[]count{
				{"ELECTION", func(n int) int { return n }, "N"},
				{"COORDINATOR", func(n int) int { return n }, "N"},
			},
			"2N",
		},
		{
			ring, "best: the leader's predecessor notices", false,
			func(n int) []notice { return at(n - 1) },
			[]count{
				{"ELECTION", func(n int) int { return n - 1 }, "N-1"},
				{"COORDINATOR", func(n int) int { return n - 1 }, "N-1"},
			},
			"2N",
		},
		{
			ring, "the first notices, the dead leader is probed", false,
			func(n int) []notice { return append(at(1), notice{n - 1, 2 * time.Second}) },
			[]count{
				{"ELECTION", func(n int) int { return n }, "N-1 and one probe"},
				{"COORDINATOR", func(n int) int { return n - 1 }, "N-1"},
			},
			"2N",
		},
		{
			ring, "worst: all notice at once", false, everybody,
			[]count{
				{"ELECTION", func(n int) int { return 2*n - 3 }, "2N-3"},
				{"COORDINATOR", func(n int) int { return n - 1 }, "N-1"},
			},
			"2N",
		},
	}
}

func elections(s lab.Scale) lab.Plan {
	most := 20
	if s == lab.Quick {
		most = 8
	}
	var points []int
	for n := 3; n <= most; n++ {
		points = append(points, n)
	}
	p := lab.Plan{Sweep: "N", Labels: []string{"algorithm", "case"}, Measures: kinds, Report: reportElections}
	for _, e := range ways() {
		p.Configurations = append(p.Configurations, lab.Configuration{
			Labels: []string{e.entry.Info().Name, e.name},
			Points: points,
			Setup:  "delay=1ms, nobody notices but who is said to",
			Try:    e.elect,
			Expect: e.expect,
		})
	}
	return p
}

func (e election) elect(_ context.Context, n int, seed uint64) (lab.Sample, error) {
	leader := protocol.ID(n - 1)
	c := sim.Config{Config: protocol.Config{N: n}, Seed: seed, Delay: sim.Constant(hop), Detect: sim.Silent}
	if !e.alive {
		c.Faults = append(c.Faults, scenario.Step{At: hop, Verb: scenario.Crash, Procs: []protocol.ID{leader}})
	}
	for _, who := range e.notice(n) {
		c.Faults = append(c.Faults, scenario.Step{
			At: who.at, Verb: scenario.Suspect, Procs: []protocol.ID{protocol.ID(who.process - 1), leader},
		})
	}
	r, err := e.entry.Simulate(c)
	if err := cmp.Or(err, r.Err()); err != nil {
		return lab.Sample{}, err
	}
	values := map[string]float64{"messages": float64(r.Messages + r.OverheadMessages)}
	for _, m := range e.entry.Info().Messages {
		values[m.Name] = float64(r.MessagesByKind[m.Name])
	}
	return lab.Sample{Values: values}, nil
}

func (e election) expect(n int) []lab.Expectation {
	var list []lab.Expectation
	var formulas []string
	all := 0.0
	for _, c := range e.counts {
		v := float64(c.of(n))
		list, formulas, all = append(list, lab.Exactly(c.kind, v, c.formula, "")), append(formulas, c.formula), all+v
	}
	return append(list, lab.Exactly("messages", all, strings.Join(formulas, " + "), e.published))
}

// reportElections shows each case at its smallest and at its largest size.
func reportElections(r *lab.Results) lab.Report {
	t := lab.Table{
		Name: "elections", Title: "Messages of one election, each kind as its formula says",
		Columns: slices.Concat(lab.Columns("algorithm", "case", "N"), kinds, lab.Columns("published=slides", "verdict")),
	}
	figure := lab.Figure{Title: "Messages of one election", X: "processes", Y: "messages"}
	for _, e := range ways() {
		line := lab.Line{Name: e.entry.Info().Name + ", " + e.name}
		cells := r.Of(e.entry.Info().Name, e.name)
		for i, c := range cells {
			all, _ := c.Mean("messages").(float64)
			line.Points = append(line.Points, [2]float64{float64(c.Point), all})
			if i > 0 && i < len(cells)-1 {
				continue
			}
			row := []any{c.Labels[0], c.Labels[1], c.Point}
			for _, m := range kinds {
				row = append(row, c.Mean(m.Name))
			}
			t.Rows = append(t.Rows, append(row, e.published, string(c.Verdict())))
		}
		figure.Lines = append(figure.Lines, line)
	}
	return lab.Report{
		Tables:  []lab.Table{r.Compare("kinds", "every kind, beside its formula"), t},
		Figures: []lab.Figure{figure},
		Notes: []string{
			"The leader has the highest id. Messages to a dead process count. The slides' worst case of the bully has no OKs.",
		},
	}
}
