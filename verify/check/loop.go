package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check/internal/lasso"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A ring is what a Walk remembers of a loop: the normal forms of its states, the first
// one included, and its steps.
type ring struct {
	states [][]uint32
	steps  []scenario.Step
}

// and returns the ring with one more step, which leads to a state. The one before it
// may go on in another way.
func (g *ring) and(s scenario.Step, st []uint32) *ring {
	if g == nil {
		return nil
	}
	return &ring{append(slices.Clip(g.states), st), append(slices.Clip(g.steps), s)}
}

// Loop says that the steps from here on repeat for ever: see Repeat.
func (w *Walk) Loop() {
	w.loop = len(w.steps)
	for i := range w.now {
		w.now[i].ring = &ring{states: [][]uint32{w.r.canonical(w.now[i].st)}}
	}
}

// A Repeated is what a loop without end means.
type Repeated struct {
	Property string // of infinite runs that it violates, "" if none that was asked for
	Reason   string // who waits for ever, or why no fair run goes on like that
}

// Repeat takes the steps since Loop a second time, and judges the run in which they
// repeat for ever. It is an error if they do not lead back to where they began: to a
// state that differs at most by the distance of its counters.
func (w *Walk) Repeat() (Repeated, error) {
	err := errors.New("check: no loop has begun")
	for _, e := range w.now {
		if e.ring == nil {
			continue
		}
		if err = w.open(e.ring); err != nil {
			continue
		}
		raw := e.st
		for _, next := range e.ring.states[1:] {
			if _, raw = w.r.follow(raw, next, history.Fault{}, nil); raw == nil {
				return Repeated{}, errUnfollowed
			}
		}
		if slices.Contains(w.r.asked, ConcurrentEntry) && w.excluded(e.ring) {
			return Repeated{ConcurrentEntry, "somebody tries for ever, and shares with all who are inside or try"}, nil
		}
		if what := w.neglected(e.ring, false); what != "" {
			return Repeated{Reason: "no fair run goes on like that: it neglects " + what}, nil
		}
		return w.forever(e.ring), nil
	}
	return Repeated{}, err
}

// open returns an error that says why a ring is none.
func (w *Walk) open(g *ring) error {
	first, last := g.states[0], g.states[len(g.states)-1]
	if slices.Equal(first, last) {
		return nil
	}
	var differ []string
	for i := range w.r.rules.Total {
		if first[1+i] != last[1+i] {
			differ = append(differ, w.r.rules.Names.Of(protocol.ID(i)))
		}
	}
	if !slices.Equal(first[1+w.r.rules.Total:w.r.flight], last[1+w.r.rules.Total:w.r.flight]) {
		differ = append(differ, "what all processes share")
	}
	if !slices.Equal(first[w.r.flight:], last[w.r.flight:]) {
		differ = append(differ, "the messages on their way")
	}
	if first[0] != last[0] {
		differ = append(differ, "the faults that are left")
	}
	return fmt.Errorf("check: the loop does not lead back to its beginning: %s changed", strings.Join(differ, ", "))
}

// neglected returns a step that must happen, is possible all along, or again and again where
// that is enough, and is never taken. Where who is inside stays, its exit need not happen.
func (w *Walk) neglected(g *ring, stays bool) string {
	r := w.r
	r.raw = false
	defer func() { r.raw = true }()
	type debt struct {
		line   string // of a step of the class
		in     int    // how many states one is possible in
		served bool
	}
	debts, order := map[lasso.Class]*debt{}, []lasso.Class(nil)
	states := g.states[:max(1, len(g.steps))]
	for i, st := range states {
		r.enter(st)
		acts := r.actions(nil)
		enabled := map[lasso.Class]bool{}
		for _, a := range acts {
			c := r.class(a)
			if !r.owed(a, stays) || enabled[c] {
				continue
			}
			if enabled[c] = true; debts[c] == nil {
				debts[c], order = &debt{line: r.line(a, r.m)}, append(order, c)
			}
			debts[c].in++
		}
		for _, a := range acts {
			o := r.reach(a)
			if i == len(g.steps) || !slices.Equal(r.next, g.states[i+1]) || !alike(r.step(a, r.m), g.steps[i]) {
				continue
			}
			for c := range enabled {
				debts[c].served = debts[c].served || r.serves(a, o, c)
			}
		}
	}
	for _, c := range order {
		d := debts[c]
		waits := verb(c>>48) == timeout && r.c.Timers == NeverFire
		if !d.served && !waits && (d.in == len(states) || r.Strong(c)) {
			return d.line
		}
	}
	return ""
}

// excluded reports whether a ring violates ConcurrentEntry.
func (w *Walk) excluded(g *ring) bool {
	for u := range w.r.rules.Total {
		if !slices.ContainsFunc(g.states, func(st []uint32) bool { return !w.r.excluded(st, u) }) {
			return w.neglected(g, true) == ""
		}
	}
	return false
}

// alike reports whether two steps differ at most in their message: a normal form may call
// it by another name.
func alike(a, b scenario.Step) bool {
	return a.Verb == b.Verb && slices.Equal(a.Procs, b.Procs) && a.Timer == b.Timer
}

// forever says who waits in all states of a ring, and which property that violates.
func (w *Walk) forever(g *ring) Repeated {
	r := w.r
	var waiting []string
	for u := range r.rules.Total {
		if r.user[u] && !slices.ContainsFunc(g.states, func(st []uint32) bool { return !waits(r.summaries[st[1+u]].section) }) {
			waiting = append(waiting, r.rules.Names.Of(protocol.ID(u)))
		}
	}
	halted := !slices.ContainsFunc(g.states, func(st []uint32) bool { return !r.halted(st) })
	each := func(what string) string { return strings.Join(waiting, " "+what+", ") + " " + what }
	switch {
	case r.rules.Elects() && slices.Contains(r.asked, Termination) && len(g.steps) > 0:
		return Repeated{Termination, "the election goes on for ever"}
	case halted && slices.Contains(r.asked, MakesProgress):
		return Repeated{MakesProgress, "somebody waits all the time, and " + r.noProgress()}
	case len(waiting) > 0 && slices.Contains(r.asked, Starvation):
		return Repeated{Starvation, each("waits for ever")}
	case len(waiting) > 0 && !halted && slices.Contains(r.asked, Bypass):
		return Repeated{Bypass, each("is overtaken for ever")}
	case len(waiting) > 0:
		return Repeated{Reason: each("waits for ever")}
	}
	return Repeated{Reason: "nobody waits for ever"}
}

// noProgress is what a run without progress lacks.
func (s *space) noProgress() string {
	if s.rules.Info.Weak {
		return "nobody ever enters, nor has an outcome"
	}
	return "nobody is ever inside"
}

// waits: for crit, rem, or the outcome of an operation.
func waits(s protocol.Section) bool {
	return history.Wait(s) != ""
}
