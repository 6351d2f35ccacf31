package network

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/sim"
)

// Classics are the algorithms whose users exclude each other.
var Classics = lab.Experiment{
	Name:  "classics/network",
	Title: "what the simulator predicts, and what a network does",
	Plan:  plan(1, func(i protocol.Info) bool { return !i.Grouped }),
	Least: 2, Most: 16,
}

// Groups are those whose users share the lock with a group, here one of two.
var Groups = lab.Experiment{
	Name:  "tokengme/network",
	Title: "what the simulator predicts of group locks, and what a network does",
	Plan:  plan(3, func(i protocol.Info) bool { return i.Grouped }),
	Least: 2, Most: 16,
}

// delay is T, the mean. It is long beside what a machine takes for a message.
const delay = 20 * time.Millisecond

// delays differ by a hair: no two messages of a network arrive at once at two places, and where they do in the simulator, Sigma as
// published, for one, costs a third more.
var delays = sim.Uniform(delay-delay/200, delay+delay/200)

// nearly is how far, relative to the prediction, a measure may be from it that nothing makes exact.
const nearly = 0.25

// predicted ends the name of a measure with what the simulator says.
const predicted = "_simulated"

var names = []string{"messages", "waiting", "sync_delay"}

var measures = lab.Columns(
	"messages", "messages_simulated=simulated", "waiting=wait/T", "waiting_simulated=simulated",
	"sync_delay=sync/T", "sync_delay_simulated=simulated",
)

// plan tries all forms that are of some kind, and that a network runs, with so many times the entries: where groups are
// drawn, the mean of a few says little.
func plan(times int, of func(protocol.Info) bool) func(lab.Scale) lab.Plan {
	return func(s lab.Scale) lab.Plan {
		p := lab.Plan{Sweep: "N", Labels: []string{"algorithm", "variant"}, Measures: measures, Report: report}
		sizes := map[lab.Scale][]int{lab.Quick: {3}, lab.Default: {5}, lab.Full: {3, 5, 8}}[s]
		entries := map[lab.Scale]int{lab.Quick: 10, lab.Default: 60, lab.Full: 200}[s]
		for _, e := range catalog.All {
			if i := e.Info(); of(i) && runs(i) {
				p.Configurations = append(p.Configurations, trial{e, times * entries}.configuration(sizes))
			}
		}
		return p
	}
}

// runs reports whether a network runs an algorithm, and all its users can try for ever.
func runs(i protocol.Info) bool {
	lost := slices.Concat(i.Lacks, i.Refuted)
	switch {
	case i.Users == protocol.Nobody, i.Weak, i.Registers != nil, i.Among:
		return false // see package live
	case i.Users == protocol.Members && i.Detector == protocol.PerfectDetector:
		return false
	}
	return !slices.Contains(lost, "deadlock") && !slices.Contains(lost, "exclusion")
}

// A trial is one form, with so many entries of each user.
type trial struct {
	catalog.Entry
	entries int
}

// config is a run with n members: all users try for ever. Channels are FIFO, as those of a network are.
func (t trial) config(n int, seed uint64) sim.Config {
	i := t.Info()
	c := sim.Config{
		Config: protocol.Config{N: n, Options: map[string]int64{}}, Entries: []int{t.entries}, Seed: seed,
		Delay: delays, Think: sim.Constant(0), Hold: sim.Constant(time.Millisecond), FIFO: true,
	}
	if i.Users == protocol.Clients {
		c.Clients = n
	}
	if slices.ContainsFunc(i.Options, func(o protocol.Option) bool { return o.Name == "fence" }) {
		c.Options["fence"] = 0 // no part of what is compared
	}
	return c
}

func (t trial) configuration(sizes []int) lab.Configuration {
	i, c := t.Info(), t.config(sizes[0], 1)
	return lab.Configuration{
		Labels: []string{i.Name, i.Variant},
		Points: sizes,
		Setup:  fmt.Sprintf("entries=%v delay=%v think=%v hold=%v", c.Entries, c.Delay, c.Think, c.Hold),
		Cost:   func(n int) time.Duration { return time.Duration(n*t.entries) * 2 * delay },
		Try:    t.try,
		Expect: t.expect,
	}
}

// try runs both.
func (t trial) try(ctx context.Context, n int, seed uint64) (lab.Sample, error) {
	c := t.config(n, seed)
	want, err := t.predict(c)
	if err != nil {
		return lab.Sample{}, err
	}
	got, err := t.OnNetwork(ctx, c)
	if err = cmp.Or(err, got.Err()); err != nil {
		return lab.Sample{}, err
	}
	values := map[string]float64{}
	for k, v := range costs(got) {
		values[k], values[k+predicted] = v, want[k]
	}
	return lab.Sample{Values: values}, nil
}

// predict is what the simulator says of the costs of a run.
func (t trial) predict(c sim.Config) (map[string]float64, error) {
	r, err := t.Simulate(c.ByNodes(t.Info()))
	if err = cmp.Or(err, r.Err()); err != nil {
		return nil, err
	}
	return costs(r), nil
}

// costs are those of a run, in T where they are times.
func costs(r sim.Result) map[string]float64 {
	t := float64(delay) / float64(time.Millisecond)
	return map[string]float64{"messages": r.MessagesPerEntry, "waiting": r.Waiting.Mean / t, "sync_delay": r.SyncDelay.Mean / t}
}

// expect is that messages are those which the algorithm claims where that is one number, and that everything else is near what the
// simulator says.
func (t trial) expect(n int) (list []lab.Expectation) {
	c := t.config(n, 1)
	want, err := t.predict(c)
	if err != nil {
		want = map[string]float64{"messages": math.NaN(), "waiting": math.NaN(), "sync_delay": math.NaN()} // Try says why
	}
	for _, name := range names {
		x := lab.Expectation{Measure: name, Least: (1 - nearly) * want[name], Most: (1 + nearly) * want[name]}
		x.Formula = fmt.Sprintf("simulated +- %.0f %%", 100*nearly)
		if name == "messages" {
			for _, claim := range t.Info().Claims {
				if claim.Load == protocol.HighLoad && claim.Measure == protocol.Messages && claim.Least(c.Config) == claim.Most(c.Config) {
					x = lab.Exactly(name, claim.Least(c.Config), claim.Formula, "")
				}
			}
		}
		list = append(list, x)
	}
	return list
}

func report(r *lab.Results) lab.Report {
	t := lab.Table{
		Name: "network",
		Title: fmt.Sprintf("An entry where all try for ever, T = %v: messages, wait and synchronization delay on a network,\n"+
			"each beside what the simulator predicts", delay),
		Columns: slices.Concat(lab.Columns("algorithm", "variant", "N"), measures, lab.Columns("verdict")),
	}
	figure := lab.Figure{Title: "Waits on a network over those predicted", X: "predicted, T", Y: "measured, T"}
	line := lab.Line{Name: "equal"}
	most := 1.0
	for _, c := range r.Cells() {
		row := []any{c.Labels[0], c.Labels[1], c.Point}
		for _, m := range measures {
			row = append(row, c.Mean(m.Name))
		}
		t.Rows = append(t.Rows, append(row, string(c.Verdict())))
		got, _ := c.Mean("waiting").(float64)
		want, _ := c.Mean("waiting" + predicted).(float64)
		if got <= 0 || want <= 0 {
			continue // the axes are logarithmic
		}
		most = max(most, got, want)
		figure.Lines = append(figure.Lines, lab.Line{
			Name: strings.TrimSpace(c.Labels[0] + " " + c.Labels[1]), Points: [][2]float64{{want, got}},
		})
	}
	line.Points = [][2]float64{{1, 1}, {most, most}}
	figure.Lines = append([]lab.Line{line}, figure.Lines...)
	return lab.Report{
		Tables:  []lab.Table{r.Compare("measures", "every measure, beside what was expected"), t},
		Figures: []lab.Figure{figure},
		Notes: []string{
			"Messages are equal where the claim of the algorithm is one number; everything else is within 25 % of the simulator.",
			"What is measured depends on the machine, and on what else it does.",
		},
	}
}
