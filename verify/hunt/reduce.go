package hunt

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// most is how many steps a reduction takes, in all candidates together: some half a
// minute.
const most = 60_000_000

// calmBase is where the ids of a calm that follows a candidate begin.
const calmBase = 1 << 30

// A reducer makes a run that violates a property as short as it can. A candidate
// is the run with some edit. It is replayed, without those choices that are then no
// longer possible, and it is good when it violates the same property.
type reducer struct {
	model    *model
	run      []world.Action // the shortest so far
	property string
	usual    map[string]int64 // the options where none are drawn
	taken    int              // steps
	anySize  bool             // the number of members was drawn
	excess   int              // over the budget of the model
	stopped  func() bool
	scratch  []world.Action
	calm     []world.Action // what the last candidate's calm took
}

// replay takes the choices of a candidate, and returns those that were possible,
// up to the violation. What is returned is valid until the next call.
func (x *reducer) replay(candidate []world.Action) (run []world.Action, good bool) {
	m := x.model
	m.Reset()
	x.scratch = x.scratch[:0]
	for _, c := range candidate {
		if m.Found != nil {
			break
		}
		if c.Verb == scenario.Crash && m.Majority && waits(x.property) && !m.several(int(c.A)) {
			continue // then whoever waits may
		}
		if m.do(&c) {
			x.scratch = append(x.scratch, c)
			if x.invariant() {
				m.judge(x.property)
			}
		}
	}
	x.taken += len(candidate)
	if m.Found == nil && waits(x.property) {
		w := newWalker(m, &plan{chance: rand.New(rand.NewPCG(1, 1))}) // who has not tried need not
		w.base, w.leave = calmBase, x.property != check.ConcurrentEntry
		w.settle()
		x.taken += len(w.run)
		x.calm = w.run
		// A check calls a deadlock what a calm finds at once or in the end.
		return x.scratch, m.Found != nil && waits(m.Found.Property) &&
			(x.property == check.ConcurrentEntry) == (m.Found.Property == check.ConcurrentEntry)
	}
	return x.scratch, m.Found != nil && m.Found.Property == x.property
}

// waits reports whether a property is one of runs that go on for ever.
func waits(property string) bool {
	switch property {
	case Stuck, check.Deadlock, check.Agreement, check.ConcurrentEntry, history.Lagging:
		return true
	}
	return false
}

func (x *reducer) invariant() bool {
	return slices.ContainsFunc(x.model.Algorithm.Invariants, func(i protocol.Invariant) bool { return i.Name == x.property })
}

// try takes a candidate for the run if it is good and shorter.
func (x *reducer) try(candidate []world.Action) (good bool) {
	return !x.over() && x.accept(candidate, 0, len(x.run)-1)
}

// accept takes a candidate for the run if it is good, and so many steps of it are possible.
func (x *reducer) accept(candidate []world.Action, least, most int) (good bool) {
	left, good := x.replay(candidate)
	if good = good && least <= len(left) && len(left) <= most; good {
		x.run = slices.Clone(left)
	}
	return good
}

// over reports whether the reduction is to end.
func (x *reducer) over() bool {
	limit := most
	if waits(x.property) {
		limit /= 4 // a calm checks more at each step
	}
	return x.taken >= limit || x.stopped()
}

// reduce makes the run as short as it can.
func (x *reducer) reduce() {
	// Whoever waits without end has made a long run by then.
	for k := 16; waits(x.property) && k < len(x.run); k *= 2 {
		x.try(x.run[:k])
	}
	for before := -1; before != len(x.run); {
		before = len(x.run)
		x.ddmin(world.Action.Fault)
		x.groups()
		x.compact()
		x.smaller()
		x.options()
		x.atomic()
		x.ddmin(func(world.Action) bool { return true })
		x.again()
		for x.pair() {
		}
		for x.move() {
		}
		for x.substitute() {
		}
	}
}

// without returns run without the choices for which drop holds.
func without(run []world.Action, drop func(i int, c world.Action) bool) []world.Action {
	var left []world.Action
	for i, c := range run {
		if !drop(i, c) {
			left = append(left, c)
		}
	}
	return left
}

// leave returns run without the choices at some places, which are in order.
func leave(run []world.Action, out ...int) []world.Action {
	return without(run, func(i int, _ world.Action) bool {
		_, found := slices.BinarySearch(out, i)
		return found
	})
}

// ddmin takes away chunks of the choices for which of holds: large ones first.
func (x *reducer) ddmin(of func(world.Action) bool) {
	places := func() (all []int) {
		for i, c := range x.run {
			if of(c) {
				all = append(all, i)
			}
		}
		return all
	}
	at := places()
	for size := (len(at) + 1) / 2; size > 0; size /= 2 {
		for from := len(at); from > 0 && !x.over(); {
			// From the end: what comes late depends on what came before.
			to := min(from, len(at))
			from = max(0, to-size)
			if x.try(leave(x.run, at[from:to]...)) {
				at = places()
			}
		}
	}
}

// groups takes away all that one process does or that happens to it, and all that
// one user does from one try to the next.
func (x *reducer) groups() {
	for i := range int32(x.model.Total) {
		x.try(without(x.run, func(_ int, c world.Action) bool { return c.Actor() == int(i) || c.Of(i) }))
	}
	for at := len(x.run) - 1; at >= 0; at-- {
		if at >= len(x.run) || x.run[at].Verb != scenario.Try {
			continue
		}
		u, inside := x.run[at].A, true
		x.try(without(x.run, func(i int, c world.Action) bool {
			if i > at && c.Verb == scenario.Try && c.A == u {
				inside = false
			}
			return i >= at && inside && c.Of(u)
		}))
	}
}

// compact leaves out the clients that no world.Action names, and numbers the others anew
// in their order, because ids break ties.
func (x *reducer) compact() {
	s := x.model.sys
	number, used := make([]int32, x.model.Total), int32(s.N)
	for i := range int32(x.model.Total) {
		switch {
		case i < int32(s.N):
			number[i] = i
		case slices.ContainsFunc(x.run, func(c world.Action) bool { return c.Of(i) }):
			number[i] = used
			used++
		}
	}
	if int(used) == x.model.Total {
		return
	}
	fewer := slices.Clone(x.run)
	for k := range fewer {
		c := &fewer[k]
		c.A, c.B = number[c.A], number[c.B]
	}
	s.Clients = int(used) - s.N
	x.in(s, fewer, len(x.run))
}

// in lets a candidate be the run in another system, if it is good there and of no less than some and
// no more steps than the run.
func (x *reducer) in(s system, candidate []world.Action, least int) (good bool) {
	old := x.model
	x.model = newModel(old.Algorithm, s)
	if good = x.accept(candidate, least, len(x.run)); !good {
		x.model = old
	}
	return good
}

// smaller takes members away, with all that they do.
func (x *reducer) smaller() {
	for i := int32(x.model.sys.N) - 1; i >= 0 && x.anySize && x.model.sys.N > 1 && !x.over(); i-- {
		s := x.model.sys
		s.N--
		s.Down = slices.DeleteFunc(slices.Clone(s.Down), func(d protocol.ID) bool { return int(d) >= s.N })
		budget, silent := allowance(x.model.Info, x.model.Algorithm.Unsettled != nil, s, x.excess)
		if s.budget = budget; silent < count(x.run, scenario.Drain) {
			break
		}
		memory := world.New(x.model.Info, s.Config, s.Clients, s.Registers).Memory
		number := renumbered(x.model.Memory, memory, protocol.ID(i))
		fewer := without(x.run, func(_ int, c world.Action) bool { return c.Of(i) || c.Accesses() && number[c.Kind] < 0 })
		for k := range fewer {
			c := &fewer[k]
			if c.Accesses() {
				c.Kind = number[c.Kind]
			}
			if c.A > i {
				c.A--
			}
			if c.B > i {
				c.B--
			}
		}
		x.in(s, fewer, 0)
	}
}

// count is how many choices of run have a verb.
func count(run []world.Action, verb scenario.Verb) (k int) {
	for _, c := range run {
		if c.Verb == verb {
			k++
		}
	}
	return k
}

// atomic lets registers be atomic, and a write that has a beginning and an end be one of the two.
func (x *reducer) atomic() {
	if x.model.sys.Registers != protocol.Safe {
		return
	}
	s := x.model.sys
	s.Registers = protocol.Atomic
	for _, verb := range []scenario.Verb{scenario.Write, scenario.Begin} {
		if x.in(s, without(x.run, func(_ int, c world.Action) bool { return c.Verb == verb }), 0) {
			return
		}
	}
}

// options resets what was drawn, one option after the other.
func (x *reducer) options() {
	for _, name := range slices.Sorted(maps.Keys(x.model.sys.Options)) {
		value, usual := x.usual[name]
		if usual && value == x.model.sys.Options[name] {
			continue
		}
		s := x.model.sys
		s.Options = maps.Clone(s.Options)
		if delete(s.Options, name); usual {
			s.Options[name] = value
		}
		x.in(s, x.run, 0)
	}
}
