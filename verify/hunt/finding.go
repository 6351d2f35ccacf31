package hunt

import (
	"maps"
	"strings"

	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/verify/world"
)

// A Violation is a run that violates a property, minimised.
type Violation struct {
	Property string   `json:"property"`
	Reason   string   `json:"reason"` // what is wrong at the end
	Run      int64    `json:"run"`    // its number
	Budget   int      `json:"budget"` // members that could be unsettled at a time
	N        int      `json:"n"`
	Clients  int      `json:"clients"`
	Found    int      `json:"found"` // steps of the run as it was found
	Trace    []string `json:"trace"` // scenario lines of a run of the checker's model; none where Timed
	// Timed says that it takes clocks or delays to violate the property, so that what is
	// left is a simulation.
	Timed bool `json:"timed"`
	// Replayed says that package check, or with Timed package sim, violates the same
	// property when it is given the trace.
	Replayed bool `json:"replayed"`

	// History is the trace with what each step did, nil where Timed.
	History *scenario.Run `json:"-"`
	// Check and Simulation are what to give to package check or package sim.
	Check      check.Config `json:"-"`
	Simulation sim.Config   `json:"-"`
}

// minimise makes the run of an outcome as short as it can.
func (h *hunter) minimise(beyond int, o *outcome) error {
	h.report(beyond, true)
	p := h.cfg.draw(h.alg.Info, h.alg.Unsettled != nil, o.run, beyond)
	v := Violation{
		Property: o.found.Property, Reason: o.found.Text, Run: o.run, Budget: p.budget, N: p.N, Clients: p.Clients,
		Trace: []string{},
	}
	run, sys, property, err := h.steps(&p, o)
	if err != nil {
		return err
	}
	if run == nil {
		err = h.simplify(&v, &p)
	} else {
		v.Property, v.Found = property, len(run)
		h.shorten(&v, sys, run)
	}
	h.result.Violations = append(h.result.Violations, v)
	return err
}

// steps returns the steps of a run as those of a model, and what they violate
// there; nil when it takes clocks or delays to violate anything.
func (h *hunter) steps(p *plan, o *outcome) (run []world.Action, s system, property string, err error) {
	if !p.timed {
		m := newModel(h.alg, p.system)
		w := newWalker(m, p)
		w.walk()
		return w.run, m.sys, w.Found.Property, nil
	}
	if p.config.Loss+p.config.Dup > 0 && h.alg.Stale == nil {
		return nil, s, "", nil // what is lost must not arrive in the end
	}
	m, run, err := newSimulators(h.alg).record(h.alg, p)
	switch {
	case err != nil:
		return nil, s, "", err
	case m.Found != nil:
		return run, m.sys, m.Found.Property, nil
	case waits(o.found.Property):
		x := &reducer{model: m, property: o.found.Property, stopped: h.interrupted}
		if _, good := x.replay(run); good {
			return run, m.sys, o.found.Property, nil
		}
	}
	return nil, s, "", nil
}

// shorten reduces a run of a model to a trace that package check replays.
func (h *hunter) shorten(v *Violation, s system, run []world.Action) {
	x := &reducer{
		model: newModel(h.alg, s), run: run, property: v.Property, usual: h.usual(v.Property), stopped: h.interrupted, anySize: h.cfg.N == 0,
		excess: h.result.Beyond,
	}
	if x.accept(run, 0, len(run)) {
		x.reduce()
	}
	// Else somebody is stuck only for as long as the calm of this run took.
	if _, good := x.replay(x.run); good && waits(v.Property) {
		// What seemed to be without end may end soon, now that it is short.
		v.Property, v.Reason = x.model.Found.Property, x.model.Found.Text
		if v.Property == check.Deadlock || v.Property == check.Agreement || v.Property == history.Lagging {
			x.run = append(x.run, x.calm...)
		}
	}
	h.render(v, x)
}

// usual are the options that a finding has if it needs no other ones: those that
// package check has where h's Config gives none. What only repeats messages is off
// there, which does not matter to what is wrong in one state, but to who waits.
func (h *hunter) usual(property string) map[string]int64 {
	all := map[string]int64{}
	maps.Copy(all, h.cfg.Options)
	for _, o := range h.alg.Options {
		if _, given := all[o.Name]; given || o.InCheck == nil {
			continue
		}
		if all[o.Name] = o.InCheck(h.cfg.Config); waits(property) {
			all[o.Name] = o.Default(h.cfg.Config)
		}
	}
	return all
}

// render writes a run as a scenario, and lets package check replay it.
func (h *hunter) render(v *Violation, x *reducer) {
	m, run := x.model, x.run
	v.N, v.Clients = m.sys.N, m.sys.Clients
	c := check.Config{Properties: []string{v.Property}}
	c.Use(m.sys.System)
	c.Wants = nil
	switch {
	case v.Property == Stuck && m.Elects():
		c.Properties = []string{check.Termination}
	case v.Property == Stuck:
		c.Properties = []string{check.MakesProgress}
	}
	for i := range m.Total {
		if !m.IsUser(i) {
			continue
		}
		tries := 0
		for _, k := range run {
			if k.Verb == scenario.Try && int(k.A) == i {
				tries++
			}
		}
		if c.Entries = append(c.Entries, tries); m.Grouped {
			c.Wants = append(c.Wants, m.chosen(run, i))
		}
	}
	for _, b := range c.Budgets() {
		*b.Most = count(run, b.Verb)
	}
	c.Suspect = m.mistakes(run)
	c.Downgrade = count(run, scenario.Downgrade) > 0
	c.Crash = max(c.Crash, min(c.Recover, 1))
	if m.Weak {
		c.Operations = []int{max(1, m.operations(run))}
	}
	if c.Amnesia > 0 && h.alg.Unsettled != nil {
		c.Spaced = m.sys.budget
	}
	v.Check = c
	steps := m.script(run)
	names := m.Names
	for _, s := range steps {
		v.Trace = append(v.Trace, names.Format(s))
	}
	switch {
	case len(run) > replayable:
	case v.Property == Stuck || v.Property == check.ConcurrentEntry:
		h.decide(v, steps)
	default:
		h.replay(v, steps)
	}
}

// decide lets package check look for a loop without progress near the end of the
// steps. With it, that is what was found. The bound is one of memory, because what a
// hunt finds does not depend on time.
func (h *hunter) decide(v *Violation, steps []scenario.Step) {
	c := v.Check
	c.Prefix, c.Done, c.MaxMemory = steps, h.cfg.Done, 16<<20
	verdict, err := check.Run(h.alg, c)
	if err != nil || verdict.Verdict != check.Violated {
		h.replay(v, steps)
		return
	}
	v.Property, v.Reason, v.Replayed = verdict.Property, verdict.Reason, true
	v.Trace, v.History = verdict.Trace, verdict.Run
}

// replayable is how many steps package check replays in a moment: each of them costs
// as much as all steps that are possible there.
const replayable = 2000

// replay lets package check take the steps.
func (h *hunter) replay(v *Violation, steps []scenario.Step) {
	w, err := check.NewWalk(h.alg, v.Check)
	if err != nil {
		v.Reason = err.Error()
		return
	}
	for _, s := range steps {
		if _, err := w.Take(s); err != nil {
			v.Reason = strings.TrimPrefix(v.Reason+"; "+err.Error(), "; ")
			return
		}
	}
	run := w.Run()
	v.History = &run
	if property, err := w.Violation(); property == v.Property {
		v.Replayed, v.Reason = true, err.Error()
	}
}
