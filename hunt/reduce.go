package hunt

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/scenario"
)

// most is how many steps a reduction takes, in all candidates together: some half a
// minute.
const most = 60_000_000

// calmBase is where the ids of a calm that follows a candidate begin.
const calmBase = 1 << 30

// A reducer makes a run that violates a property as short as it can. A candidate
// is what is left of the run when some choices are taken away. It is replayed,
// without those that are then no longer possible, and it is good when it violates
// the same property.
type reducer[M any] struct {
	model    *model[M]
	property string
	usual    map[string]int64 // the options that package check has when none are drawn
	taken    int              // steps
	anySize  bool             // the number of members was drawn
	excess   int              // over the budget of the model
	stopped  func() bool
	scratch  []choice
	calm     []choice // what the last candidate's calm took
}

// replay takes the choices of a candidate, and returns those that were possible,
// up to the violation. What is returned is valid until the next call.
func (x *reducer[M]) replay(candidate []choice) (run []choice, good bool) {
	m := x.model
	m.reset()
	x.scratch = x.scratch[:0]
	for _, c := range candidate {
		if m.found != nil {
			break
		}
		if m.do(&c) {
			x.scratch = append(x.scratch, c)
			if x.invariant() {
				m.judge(x.property)
			}
		}
	}
	x.taken += len(candidate)
	if m.found == nil && waits(x.property) {
		w := newWalker(m, &plan{chance: rand.New(rand.NewPCG(1, 1))}) // who has not tried need not
		w.base = calmBase
		w.settle()
		x.taken += len(w.run)
		x.calm = w.run
		// A check calls a deadlock what a calm finds at once or in the end.
		return x.scratch, m.found != nil && (m.found.property == stuck || m.found.property == check.Deadlock)
	}
	return x.scratch, m.found != nil && m.found.property == x.property
}

// waits reports whether a property is one of runs that go on for ever.
func waits(property string) bool { return property == stuck || property == check.Deadlock }

func (x *reducer[M]) invariant() bool {
	return slices.ContainsFunc(x.model.alg.Invariants, func(i protocol.Invariant[M]) bool { return i.Name == x.property })
}

// try returns the candidate's run if it is good and shorter than run.
func (x *reducer[M]) try(candidate []choice, run []choice) ([]choice, bool) {
	if x.over() {
		return nil, false
	}
	if left, good := x.replay(candidate); good && len(left) < len(run) {
		return slices.Clone(left), true
	}
	return nil, false
}

// limit is how many steps it may take.
func (x *reducer[M]) limit() int {
	if waits(x.property) {
		return most / 4 // a calm checks more at each step
	}
	return most
}

// over reports whether the reduction is to end.
func (x *reducer[M]) over() bool { return x.taken >= x.limit() || x.stopped() }

// reduce returns the shortest run that it finds.
func (x *reducer[M]) reduce(run []choice) []choice {
	// Whoever waits without end has made a long run by then.
	for k := 16; waits(x.property) && k < len(run); k *= 2 {
		if shorter, good := x.try(run[:k], run); good {
			run = shorter
		}
	}
	for {
		before := len(run)
		run = x.ddmin(run, choice.fault)
		run = x.groups(run)
		run = x.compact(run)
		run = x.smaller(run)
		run = x.options(run)
		run = x.ddmin(run, func(choice) bool { return true })
		run = x.again(run)
		run = x.pairs(run)
		run = x.moves(run)
		run = x.substitutes(run)
		if len(run) == before {
			return run
		}
	}
}

func (c choice) fault() bool {
	switch c.verb {
	case scenario.Amnesia, scenario.Crash, scenario.Lapse, scenario.Cancel, scenario.Drain, scenario.Suspect,
		scenario.Restore, scenario.Lose, scenario.Duplicate:
		return true
	}
	return false
}

// without returns run without the choices for which drop holds.
func without(run []choice, drop func(i int, c choice) bool) []choice {
	var left []choice
	for i, c := range run {
		if !drop(i, c) {
			left = append(left, c)
		}
	}
	return left
}

// ddmin takes away chunks of the choices for which of holds: large ones first.
func (x *reducer[M]) ddmin(run []choice, of func(choice) bool) []choice {
	places := func() (all []int) {
		for i, c := range run {
			if of(c) {
				all = append(all, i)
			}
		}
		return all
	}
	at := places()
	out := make([]bool, len(run))
	for size := (len(at) + 1) / 2; size > 0; size /= 2 {
		for from := len(at); from > 0; {
			// From the end: what comes late depends on what came before.
			to := min(from, len(at))
			from = max(0, to-size)
			clear(out)
			for _, i := range at[from:to] {
				out[i] = true
			}
			candidate := without(run, func(i int, _ choice) bool { return out[i] })
			if shorter, good := x.try(candidate, run); good {
				run = shorter
				at = places()
			}
		}
	}
	return run
}

// groups takes away all that one process does or that happens to it, and all that
// one user does from one try to the next.
func (x *reducer[M]) groups(run []choice) []choice {
	for i := range int32(x.model.total) {
		candidate := without(run, func(_ int, c choice) bool { return c.actor() == int(i) || c.names(i) })
		if shorter, good := x.try(candidate, run); good {
			run = shorter
		}
	}
	for at := len(run) - 1; at >= 0; at-- {
		if at >= len(run) || run[at].verb != scenario.Try {
			continue
		}
		u, inside := run[at].a, true
		candidate := without(run, func(i int, c choice) bool {
			if i > at && c.verb == scenario.Try && c.a == u {
				inside = false
			}
			return i >= at && inside && c.names(u)
		})
		if shorter, good := x.try(candidate, run); good {
			run = shorter
		}
	}
	return run
}

// names reports whether process i is one of those that c names.
func (c choice) names(i int32) bool {
	switch c.verb {
	case scenario.Deliver, scenario.Lose, scenario.Duplicate, scenario.Suspect, scenario.Restore, scenario.Lapse:
		return c.a == i || c.b == i
	}
	return c.a == i
}

// compact leaves out the clients that no choice names, and numbers the others anew
// in their order, because ids break ties.
func (x *reducer[M]) compact(run []choice) []choice {
	s := x.model.sys
	number, used := make([]int32, x.model.total), int32(s.N)
	for i := range int32(x.model.total) {
		switch {
		case i < int32(s.N):
			number[i] = i
		case slices.ContainsFunc(run, func(c choice) bool { return c.names(i) }):
			number[i] = used
			used++
		}
	}
	if int(used) == x.model.total {
		return run
	}
	fewer := slices.Clone(run)
	for k := range fewer {
		c := &fewer[k]
		c.a, c.b = number[c.a], number[c.b]
	}
	s.clients = int(used) - s.N
	old := x.model
	x.model = newModel(old.alg, s)
	if left, good := x.replay(fewer); good && len(left) == len(run) {
		return slices.Clone(left)
	}
	x.model = old
	return run
}

// smaller takes members away, with all that they do.
func (x *reducer[M]) smaller(run []choice) []choice {
	for i := int32(x.model.sys.N) - 1; i >= 0 && x.anySize && x.model.sys.N > 1 && !x.over(); i-- {
		s := x.model.sys
		s.N--
		s.budget = Budget(x.model.alg.Info, s.Config) + x.excess
		s.down = slices.DeleteFunc(slices.Clone(s.down), func(d protocol.ID) bool { return int(d) >= s.N })
		fewer := without(run, func(_ int, c choice) bool { return c.names(i) })
		for k := range fewer {
			c := &fewer[k]
			if c.a > i {
				c.a--
			}
			if c.b > i {
				c.b--
			}
		}
		old := x.model
		x.model = newModel(old.alg, s)
		if left, good := x.replay(fewer); good && len(left) <= len(run) {
			run = slices.Clone(left)
		} else {
			x.model = old
		}
	}
	return run
}

// options resets what was drawn, one option after the other.
func (x *reducer[M]) options(run []choice) []choice {
	if waits(x.property) {
		return run
	}
	for _, name := range slices.Sorted(maps.Keys(x.model.sys.Options)) {
		value, usual := x.usual[name]
		if usual && value == x.model.sys.Options[name] {
			continue
		}
		old, s := x.model, x.model.sys
		s.Options = maps.Clone(s.Options)
		if delete(s.Options, name); usual {
			s.Options[name] = value
		}
		x.model = newModel(old.alg, s)
		if left, good := x.replay(run); good && len(left) <= len(run) {
			run = slices.Clone(left)
		} else {
			x.model = old
		}
	}
	return run
}

// pairs takes away any two choices, and of short runs any three.
func (x *reducer[M]) pairs(run []choice) []choice {
	const short, shortest = 200, 45
again:
	for i := range run {
		for j := i + 1; j < len(run) && len(run) <= short; j++ {
			if shorter, good := x.try(leave(run, i, j), run); good {
				run = shorter
				goto again
			}
			for k := j + 1; k < len(run) && len(run) <= shortest; k++ {
				if shorter, good := x.try(leave(run, i, j, k), run); good {
					run = shorter
					goto again
				}
			}
		}
	}
	return run
}

func leave(run []choice, out ...int) []choice {
	return without(run, func(i int, _ choice) bool { return slices.Contains(out, i) })
}

// again makes untimed runs of what is left of the system, with the faults of run:
// a short one may be there that no subset of run is.
func (x *reducer[M]) again(run []choice) []choice {
	const runs = 20_000
	if waits(x.property) {
		return run
	}
	m := x.model
	chance := rand.New(rand.NewPCG(uint64(m.sys.N), uint64(len(run))))
	for range runs {
		p := plan{chance: chance, system: m.sys, kinds: kindsOf(run)}
		p.untime()
		p.tries, p.storm = 2, len(run)-1
		if chance.IntN(2) == 0 {
			p.users, p.timers, p.news = 0, 0, 0 // only when nothing else is left to happen
		}
		m.reset()
		w := newWalker(m, &p)
		w.salt = chance.Uint64()
		for i := range w.tries {
			w.tries[i] *= chance.IntN(2) // the fewer there are, the shorter it is
		}
		for len(w.run) < p.storm && m.found == nil && !x.over() && w.storm() {
			if x.invariant() {
				m.judge(x.property)
			}
		}
		if x.taken += len(w.run); m.found != nil && m.found.property == x.property {
			// Losses that aim at somebody come together, so that a storm may be longer.
			if shorter, good := x.try(w.run, run); good {
				return shorter
			}
		}
	}
	return run
}

// kindsOf are the kinds of faults in a run, with what only makes schedules unfair.
func kindsOf(run []choice) kinds {
	all := pauses | aimed
	for _, c := range run {
		switch c.verb {
		case scenario.Amnesia:
			all |= losses
		case scenario.Crash:
			all |= crashes
		case scenario.Lapse:
			all |= lapses
		case scenario.Cancel:
			all |= cancels
		case scenario.Drain:
			all |= drains
		case scenario.Lose:
			all |= drops
		case scenario.Duplicate:
			all |= copies
		}
	}
	return all
}

// moves puts any choice anywhere else, which may make others needless.
func (x *reducer[M]) moves(run []choice) []choice {
	const short = 80
again:
	for i := range run {
		for j := 0; j < len(run) && len(run) <= short; j++ {
			if i == j {
				continue
			}
			moved := slices.Insert(leave(run, i), j, run[i])
			if shorter, good := x.try(moved, run); good {
				run = shorter
				goto again
			}
			if shorter, good := x.further(moved, run); good {
				run = shorter
				goto again
			}
		}
	}
	return run
}

// substitutes lets one member stand in for another one from some choice on, which
// may make a fault needless.
func (x *reducer[M]) substitutes(run []choice) []choice {
	const short = 80
again:
	for i := range int32(x.model.sys.N) {
		for j := range int32(x.model.sys.N) {
			for k := 0; k < len(run) && len(run) <= short; k++ {
				if i == j || !run[k].names(i) {
					continue
				}
				other := slices.Clone(run)
				for at := k; at < len(other); at++ {
					other[at] = other[at].with(i, j)
				}
				if shorter, good := x.further(other, run); good {
					run = shorter
					goto again
				}
			}
		}
	}
	return run
}

// with names j where c names i.
func (c choice) with(i, j int32) choice {
	if c.a == i {
		c.a = j
	}
	if c.b == i && c.names(i) {
		c.b = j
	}
	return c
}

// further takes one choice away from a candidate that is good, but not shorter
// than run.
func (x *reducer[M]) further(candidate, run []choice) ([]choice, bool) {
	left, good := x.replay(candidate)
	if !good || len(left) > len(run) || x.over() {
		return nil, false
	}
	for k := range candidate {
		if shorter, good := x.try(leave(candidate, k), run); good {
			return shorter, true
		}
	}
	return nil, false
}
