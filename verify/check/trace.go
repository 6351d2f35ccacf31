package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A root is a state from which the search starts. There is one, unless a prefix
// delivers messages that may arrive again: its line does not say whether they do,
// so the search starts from each state that it may mean.
type root struct {
	state []uint32
	raw   []uint32 // the same with the counters of the run itself
}

// prefix takes the steps of Config.Prefix from first and fills the frontier with
// the states at its end. It judges the states on the way.
func (r *searcher) prefix(first []uint32) error {
	w := Walk{r: r, first: first}
	w.Reset()
	for i := 0; ; i++ {
		for _, e := range w.now {
			if f := r.violates(r.worker, e.st); w.over == (history.Fault{}) {
				w.over = f
			}
		}
		if w.over != (history.Fault{}) {
			r.violated(w.over, r.run(r.begun, w.now[0].st))
			return nil
		}
		if i == len(r.c.Prefix) {
			break
		}
		if r.c.Prefix[i].Verb == scenario.Loop {
			continue
		}
		if _, err := w.Take(r.c.Prefix[i]); err != nil {
			return err
		}
		r.begun = w.steps
	}
	for _, e := range w.now {
		st := r.canonical(e.st)
		if _, isNew := r.store.add(st, r.print(st), uint32(len(r.roots)), 0); isNew {
			r.roots = append(r.roots, root{st, e.st})
		}
	}
	return nil
}

// canonical is the normal form of a state of a run.
func (x *worker) canonical(raw []uint32) []uint32 {
	defer func(raw bool, next []uint32) { x.raw, x.next = raw, next }(x.raw, x.next)
	x.raw, x.next = false, slices.Clone(raw)
	x.normal()
	return x.next
}

// stuck reports whether nothing that must happen changes a normal form.
func (x *worker) stuck(st []uint32) bool {
	stuck := true
	x.expand(st, func(a action) bool { return stuck && a.verb.must() }, func(v visit) {
		stuck = x.beyond(v.outcome) < 0 && slices.Equal(v.next, st) && !v.verb.accesses()
	})
	return stuck
}

// trace returns the run to state i, and from it by the further actions given.
func (r *searcher) trace(i uint32, further ...uint16) scenario.Run {
	top, ordinals := r.store.links.path(i)
	st, path := r.roots[top].state, [][]uint32(nil)
	var wrong history.Fault
	var by []action
	for _, k := range append(ordinals, further...) {
		r.enter(st)
		list, _ := r.choices()
		by = append(by, list[k])
		wrong = r.serious(r.problem(r.wrong(r.reach(list[k]))))
		st = slices.Clone(r.next)
		path = append(path, st)
	}
	if r.sym != nil {
		by = nil // these name other members
	}
	return r.along(r.roots[top], path, wrong, by...)
}

// along returns the run from a root along states, the last step of which has a
// problem, or none. The search knows normal forms; the run is the one that the
// algorithm makes, by the same actions where they are given: in a loop it matters
// which of those that lead to one state is taken.
func (r *searcher) along(from root, path [][]uint32, wrong history.Fault, by ...action) scenario.Run {
	raw, events := from.raw, slices.Clone(r.begun)
	for k, next := range path {
		var event scenario.Event
		var bad history.Fault
		if k == len(path)-1 {
			bad = wrong
		}
		if bad != (history.Fault{}) {
			next = r.canonical(next)
		}
		var a *action
		if k < len(by) {
			a = &by[k]
		}
		if event, raw = r.follow(raw, next, bad, a); raw == nil {
			why := "an encoding leaves out something of a state, or a counter matters"
			if r.sym != nil {
				why = "its members are not interchangeable"
			}
			r.claim = fmt.Errorf("%w: %s: %s: %w", ErrClaim, r.rules.Info.Name, why, errUnfollowed)
			return r.run(events, nil)
		}
		events = append(events, event)
	}
	r.last = raw
	return r.run(events, raw)
}

var errUnfollowed = errors.New("check: no run of the algorithm leads along the states that the search found")

// follow takes a step of a run to a state whose normal form is next, with the same
// problem, by an action like a if that is not nil. Without one raw is nil.
func (r *searcher) follow(from, next []uint32, wrong history.Fault, a *action) (event scenario.Event, raw []uint32) {
	defer func(raw bool) { r.raw = raw }(r.raw)
	r.raw = true
	r.expand(from, every, func(v visit) {
		v.problem = r.serious(v.problem)
		if raw != nil || a != nil && !v.alike(*a) || v.problem.Property != wrong.Property {
			return
		}
		if end := slices.Clone(v.next); slices.Equal(r.canonical(end), next) {
			raw, event = end, r.describe(from, v)
		}
	})
	return event, raw
}

// run completes a run that ends in a state, nil where there is none.
func (r *searcher) run(events []scenario.Event, raw []uint32) scenario.Run {
	run := scenario.Run{Steps: slices.Clip(events), Loop: scenario.NoLoop, Registers: r.cellsOf(raw)}
	if run.Steps == nil {
		run.Steps = []scenario.Event{}
	}
	for i := range r.rules.Total {
		run.Processes = append(run.Processes, r.rules.Names.Of(protocol.ID(i)))
	}
	run.End, run.InFlight = r.end(raw)
	return run
}

// shown are the effects that a run shows.
var shown = map[protocol.Do]string{
	protocol.Send: scenario.Sends, protocol.Propose: scenario.Proposes, protocol.Crit: scenario.Enters,
	protocol.Rem: scenario.Leaves, protocol.Ejected: scenario.Ejected, protocol.Invoke: scenario.Executes,
	protocol.Outcome: scenario.Succeeds, protocol.Install: scenario.Installs, protocol.Leader: scenario.Leads,
	protocol.Revoke: scenario.Revokes,
	protocol.Read:   scenario.Reads, protocol.Write: scenario.Writes, protocol.Await: scenario.Awaits,
}

// describe writes down an action and what it did.
func (x *worker) describe(st []uint32, v visit) scenario.Event {
	e := x.rules.Names.Event(x.step(v.action, x.m))
	switch v.verb {
	case read, awaitOverlap:
		e.Value = x.shared.contents[v.arg].Value
	case begin, write:
		e.Value = x.locals[st[1+v.a]].Open.Of(int(v.b)).Arg
	}
	if v.problem != (history.Fault{}) {
		e.Effects = append(e.Effects, scenario.Effect{Do: scenario.Wrong, Reason: v.problem.Text})
		return e
	}
	for _, f := range x.again(st, v.action) {
		effect := scenario.Effect{Do: shown[f.Do]}
		switch f.Do {
		case protocol.Send:
			effect.To, effect.Lost = x.rules.Names.Of(protocol.ID(x.messages.to(f.msg))), x.lost(st, v, f.msg)
			effect.Message = x.m.text(f.msg)
		case protocol.Propose:
			effect.Message = x.m.text(f.msg)
		case protocol.Crit:
			effect.Token, effect.Group = f.Arg, f.Data
		case protocol.Rem:
			effect.Reason = f.Reason().Error()
		case protocol.Invoke:
			effect.Operation = f.Data
		case protocol.Read, protocol.Write, protocol.Await:
			effect.Register, effect.Value = x.rules.Memory[f.To].Name, f.Arg
		case protocol.Leader, protocol.Revoke:
			effect.To, effect.Epoch = x.rules.Names.Of(f.To), f.Arg
		}
		if effect.Do != "" {
			e.Effects = append(e.Effects, effect)
		}
	}
	return e
}

// lost says why a message that was sent is not on its way.
func (x *worker) lost(st []uint32, v visit, msg uint32) string {
	from, to := x.messages.from(msg), x.messages.to(msg)
	switch {
	case x.absent(st, to):
		return x.rules.Names.Of(protocol.ID(to)) + " is not there"
	case x.rules.Severed(x.endsOf(v.next, x.later), from, to):
		return "no lease"
	}
	return ""
}

// again returns the effects of an action of a process, which a move does not keep.
func (x *worker) again(st []uint32, a action) []effect {
	switch a.verb {
	case crash, lose, duplicate, begin, agree, pause:
		return nil
	}
	i, arg := x.subject(st, &a)
	l, ins, msg := x.input(st[1+i], a.verb, arg)
	if x.summaries[st[1+i]].paused && a.verb != resume {
		return nil // it does not know
	}
	_, effects, _, _ := x.steps(&l, msg, ins...)
	return effects
}

// end tells how things stand in a state.
func (x *worker) end(st []uint32) ([]scenario.State, []scenario.Flight) {
	states, flights := []scenario.State{}, []scenario.Flight{}
	if st == nil {
		return states, flights
	}
	for i, n := range st[1 : 1+x.rules.Total] {
		state := scenario.State{Process: x.rules.Names.Of(protocol.ID(i))}
		switch {
		case x.down[i]:
			state.Section = "down"
		case x.absent(st, i):
			state.Section = "crashed"
		default:
			l := x.locals[n]
			state.Section = "up"
			if x.user[i] {
				state.Section = sections[l.Section]
			}
			state.Text = x.rules.Names.Text(protocol.Show(x.m.load(i, l.state)))
			if l.Leading.Named {
				state.Section = fmt.Sprintf("up: %s leads epoch %d", x.rules.Names.Of(l.Leading.Leader), l.Leading.Epoch)
			}
			for j := range x.rules.Config.N {
				if l.Lapsed&(1<<j) != 0 {
					state.Text = strings.TrimPrefix(state.Text+"; no lease at "+x.rules.Names.Of(protocol.ID(j)), "; ")
				}
			}
		}
		states = append(states, state)
	}
	for _, msg := range st[x.flight:] {
		from, to := protocol.ID(x.messages.from(msg)), protocol.ID(x.messages.to(msg))
		flights = append(flights, scenario.Flight{From: x.rules.Names.Of(from), To: x.rules.Names.Of(to), Message: x.m.text(msg)})
	}
	return states, flights
}

var sections = [...]string{
	protocol.InRem: "remainder", protocol.InTry: "trying", protocol.InCrit: "inside", protocol.InLost: "ejected",
	protocol.InExit: "leaving", protocol.InIssue: "inside, with an operation open",
}
