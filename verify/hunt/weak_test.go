package hunt

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/wrap/consensus"
)

// Suspicion storms, crashes and returns do no harm, with consensus as a service and over channels alone.
func TestWeak(t *testing.T) {
	t.Run("wme-1", func(t *testing.T) { stormy(t, wme.First) })
	t.Run("wme-2", func(t *testing.T) { stormy(t, wme.Second) })
	t.Run("wme-1, paxos", func(t *testing.T) { stormy(t, consensus.With(wme.First)) })
	t.Run("wme-2, paxos", func(t *testing.T) { stormy(t, consensus.With(wme.Second)) })
}

func stormy[M any](t *testing.T, a protocol.Algorithm[M]) {
	r := mustRun(t, a, Config{Seed: 1, Runs: 60, Workers: 2})
	for _, v := range r.Violations {
		t.Errorf("run %d: %s: %s\n%s", v.Run, v.Property, v.Reason, strings.Join(v.Trace, "\n"))
	}
	if r.Entries < 10*r.Runs || r.Events < 20*r.Entries {
		t.Errorf("%d runs, %d entries, %d events: do they do anything?", r.Runs, r.Entries, r.Events)
	}
}

// Of everything that such a run may have there are many, in runs without time.
func TestWeakRuns(t *testing.T) {
	c := Config{Config: protocol.Config{N: 5}, Seed: 2, Operations: []int{2}}
	count := map[scenario.Verb]int{}
	for run := range int64(30) {
		p := c.draw(wme.First.Info, true, run, 0)
		if p.timed {
			continue
		}
		w := newWalker(newModel(protocol.Erase(wme.First), p.system), &p)
		w.walk()
		for _, k := range w.run {
			count[k.Verb]++
		}
		if most := w.operations(w.run); most > c.Operations[0] {
			t.Errorf("run %d: %d operations in a section", run, most)
		}
	}
	for _, verb := range []scenario.Verb{
		scenario.Issue, scenario.Decide, scenario.Hear, scenario.Suspect, scenario.Restore, scenario.Crash, scenario.Recover, scenario.Cancel,
	} {
		if count[verb] < 20 {
			t.Errorf("%d times %s, want at least 20", count[verb], verb)
		}
	}
}

// A defect is one of the algorithm, or of what the hunt takes for its model.
type defect struct {
	name       string
	algorithm  func(a protocol.Algorithm[wme.Message]) protocol.Algorithm[wme.Message]
	properties []string
}

// changing is an algorithm whose effects are changed behind a step.
func changing(a protocol.Algorithm[wme.Message], change func(e *protocol.Effect[wme.Message])) protocol.Algorithm[wme.Message] {
	unsettled := a.Unsettled
	a = breaking(a, func(p broken[wme.Message], ev protocol.Event[wme.Message], out *protocol.Out[wme.Message]) {
		p.Process.Step(ev, out)
		for k := range out.Effects {
			change(&out.Effects[k])
		}
	})
	a.Unsettled = unsettled
	return a
}

var defects = []defect{
	{
		"who came back counts at once",
		func(a protocol.Algorithm[wme.Message]) protocol.Algorithm[wme.Message] {
			a.Unsettled = nil
			return a
		},
		[]string{check.Deadlock, Stuck, history.Lagging},
	},
	{
		"a suspicion ends no epoch",
		func(a protocol.Algorithm[wme.Message]) protocol.Algorithm[wme.Message] {
			return deaf(a, true, protocol.Suspect)
		},
		[]string{check.Deadlock, Stuck},
	},
	{
		"the third record is another one",
		func(a protocol.Algorithm[wme.Message]) protocol.Algorithm[wme.Message] {
			return changing(a, func(e *protocol.Effect[wme.Message]) {
				if e.Do == protocol.Invoke && e.Arg == 3 {
					e.Data = "other"
				}
			})
		},
		[]string{history.OneCopy},
	},
	{
		"who is ejected is told of an outcome",
		func(a protocol.Algorithm[wme.Message]) protocol.Algorithm[wme.Message] {
			return changing(a, func(e *protocol.Effect[wme.Message]) {
				if e.Do == protocol.Ejected {
					e.Do = protocol.Outcome
				}
			})
		},
		[]string{history.Outcome, check.WellFormed},
	},
	{
		"whoever issues an operation is ejected",
		func(a protocol.Algorithm[wme.Message]) protocol.Algorithm[wme.Message] { return ejecting(a, true) },
		[]string{history.Groundless, history.OperationProgress},
	},
	{
		"whoever issues an operation is ejected, once a suspicion was withdrawn",
		func(a protocol.Algorithm[wme.Message]) protocol.Algorithm[wme.Message] { return ejecting(a, false) },
		[]string{history.OperationProgress},
	},
}

// An ejector ejects whoever issues an operation; or only where some suspicion was withdrawn before, and none lasts.
type ejector struct {
	protocol.Process[wme.Message]
	always bool
	doubts uint8 // 0: none so far; 1: one lasts; 2: one was withdrawn
}

func (p *ejector) Unwrap() any { return p.Process }

func (p *ejector) Step(ev protocol.Event[wme.Message], out *protocol.Out[wme.Message]) {
	switch {
	case ev.Kind == protocol.Suspect:
		p.doubts = 1
	case ev.Kind == protocol.Restore && p.doubts == 1:
		p.doubts = 2
	case ev.Kind == protocol.Issue && (p.always || p.doubts == 2):
		out.Ejected()
		return
	}
	p.Process.Step(ev, out)
}

// State implements protocol.Process.
func (p *ejector) State(c *protocol.Codec) {
	p.Process.State(c)
	protocol.Upto(c, &p.doubts, math.MaxUint8)
}

func ejecting(a protocol.Algorithm[wme.Message], always bool) protocol.Algorithm[wme.Message] {
	create := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[wme.Message] {
		return &ejector{Process: create(id, c), always: always}
	}
	a.Moot = nil // it knows the process by its type
	return a
}

// A mute process gives no operation an outcome.
type mute struct{ protocol.Process[wme.Message] }

func (p mute) Step(ev protocol.Event[wme.Message], out *protocol.Out[wme.Message]) {
	if ev.Kind != protocol.Issue {
		p.Process.Step(ev, out)
	}
}

// Who waits for an outcome is said to.
func TestNoOutcome(t *testing.T) {
	a := wme.Second
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[wme.Message] {
		return mute{wme.Second.New(id, c)}
	}
	a.Unsettled, a.Moot = nil, nil
	v := finding(t, a, Config{Config: protocol.Config{N: 1}, Seed: 1, Runs: 10})
	if !strings.HasPrefix(v.Reason, "deadlock: p1 waits for the outcome of its operation, and nothing") {
		t.Error(v.Reason)
	}
}

// A hunt finds what is broken, and what it leaves of a run is one of the checker's, or a simulation.
func TestWeakDefects(t *testing.T) {
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			v := finding(t, d.algorithm(wme.First), Config{Config: protocol.Config{N: 3}, Seed: 1, Runs: 300, Workers: 2})
			if !slices.Contains(d.properties, v.Property) {
				t.Errorf("%s, want one of %v", v.Property, d.properties)
			}
			if !v.Timed && (len(v.Trace) == 0 || len(v.Trace) > 80) {
				t.Errorf("%d steps: %s", len(v.Trace), strings.Join(v.Trace, "\n"))
			}
			if ejects := v.Property == history.Groundless || v.Property == history.OperationProgress; ejects && !v.Replayed {
				t.Errorf("not replayed: %s", v.Reason)
			}
		})
	}
}

// Runs in time look for all that is judged of an object, too.
func TestWeakTimed(t *testing.T) {
	for _, always := range []bool{true, false} {
		a := ejecting(wme.First, always)
		c := Config{Config: protocol.Config{N: 3}, Seed: 1}
		timed, found := newSimulators(protocol.Erase(a)), map[string]bool{}
		for run := range int64(200) {
			p := c.draw(a.Info, a.Unsettled != nil, run, 0)
			if !p.timed {
				continue
			}
			_, problem, err := timed.simulate(&p)
			if err != nil {
				t.Fatal(err)
			}
			if problem != nil {
				found[problem.Property] = true
			}
		}
		want := history.OperationProgress
		if always {
			want = history.Groundless
		}
		if !found[want] {
			t.Errorf("found %v, want %s", found, want)
		}
	}
}

// An idler executes nothing until its own user, or a copy from elsewhere, needs it.
type idler struct {
	protocol.Process[wme.Message]
	held []protocol.Effect[wme.Message]
}

func (p *idler) Step(ev protocol.Event[wme.Message], out *protocol.Out[wme.Message]) {
	from := len(out.Effects)
	p.Process.Step(ev, out)
	effects := slices.Clone(out.Effects[from:])
	out.Effects = out.Effects[:from]
	needs := func(e protocol.Effect[wme.Message]) bool {
		return e.Do == protocol.Crit || e.Do == protocol.Outcome || e.Do == protocol.Install || e.Do == protocol.Capture
	}
	if slices.ContainsFunc(effects, needs) {
		out.Effects = append(out.Effects, p.held...)
		p.held = nil
		out.Effects = append(out.Effects, effects...)
		return
	}
	for _, e := range effects {
		if e.Do == protocol.Invoke {
			p.held = append(p.held, e)
		} else {
			out.Effects = append(out.Effects, e)
		}
	}
}

// A copy that is behind the others when all is at rest is found, in runs with time and without.
func TestWeakLags(t *testing.T) {
	a := wme.First
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[wme.Message] {
		p := wme.First.New(id, c)
		if id < 2 {
			return p
		}
		return &idler{Process: p}
	}
	a.Unsettled, a.Moot = nil, nil
	c := Config{Config: protocol.Config{N: 3}, Seed: 1}
	timed, found := newSimulators(protocol.Erase(a)), map[bool]map[string]int{true: {}, false: {}}
	for run := range int64(100) {
		p := c.draw(a.Info, false, run, 0)
		var problem *history.Fault
		if p.timed {
			var err error
			if _, problem, err = timed.simulate(&p); err != nil {
				t.Fatal(err)
			}
		} else {
			w := newWalker(newModel(protocol.Erase(a), p.system), &p)
			w.walk()
			problem = w.Found
		}
		if problem != nil {
			found[p.timed][problem.Property]++
		}
	}
	if found[true][history.Lagging] == 0 || found[false][history.Lagging] == 0 {
		t.Errorf("found %v with time, and %v without, want %s", found[true], found[false], history.Lagging)
	}
}

func TestOperationsRefused(t *testing.T) {
	for _, c := range []Config{{Runs: 1, Operations: []int{-1}}, {Runs: 1, Operations: []int{1}}} {
		if _, err := Run(generous, c); err == nil {
			t.Errorf("%v operations without an object are taken", c.Operations)
		}
	}
	for _, k := range []int{-1, limits.Operations + 1} {
		if _, err := Run(wme.First, Config{Runs: 1, Operations: []int{k}}); err == nil {
			t.Errorf("%d operations are taken", k)
		}
	}
}
