package hunt

import (
	"math/rand/v2"
	"slices"

	"github.com/poundlock/poundlock/verify/world"
)

// pairs takes away any two choices, and of short runs any three.
func (x *reducer) pairs(run []world.Action) []world.Action {
	const short, shortest = 200, 45
again:
	for i := range run {
		for j := i + 1; j < len(run) && len(run) <= short && !x.over(); j++ {
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

func leave(run []world.Action, out ...int) []world.Action {
	return without(run, func(i int, _ world.Action) bool { return slices.Contains(out, i) })
}

// again makes untimed runs of what is left of the system, with the faults of run:
// a short one may be there that no subset of run is.
func (x *reducer) again(run []world.Action) []world.Action {
	const runs = 20_000
	if waits(x.property) {
		return run
	}
	m := x.model
	chance := rand.New(rand.NewPCG(uint64(m.sys.N), uint64(len(run))))
	for k := 0; k < runs && !x.over(); k++ {
		p := plan{chance: chance, system: m.sys, kinds: kindsOf(run)}
		p.untime()
		p.tries, p.storm = 2, len(run)-1
		if m.Consensus {
			p.agrees = p.between(1, 20)
		}
		p.operations = m.operations(run)
		if chance.IntN(2) == 0 {
			p.users, p.timers, p.news = 0, 0, 0 // only when nothing else is left to happen
		}
		m.Reset()
		w := newWalker(m, &p)
		w.salt = chance.Uint64()
		for i := range w.tries {
			w.tries[i] *= chance.IntN(2) // the fewer there are, the shorter it is
		}
		for len(w.run) < p.storm && m.Found == nil && !x.over() && w.storm() {
			if x.invariant() {
				m.judge(x.property)
			}
		}
		if x.taken += len(w.run); m.Found != nil && m.Found.Property == x.property {
			// Losses that aim at somebody come together, so that a storm may be longer.
			if shorter, good := x.try(w.run, run); good {
				return shorter
			}
		}
	}
	return run
}

// kindsOf are the kinds of faults in a run, with what only makes schedules unfair.
func kindsOf(run []world.Action) kinds {
	all := pauses | aimed
	for _, c := range run {
		if all |= kindOf[c.Verb]; c.Keep {
			all |= copies
		}
	}
	return all
}

// moves puts any world.Action anywhere else, which may make others needless.
func (x *reducer) moves(run []world.Action) []world.Action {
	const short = 80
again:
	for i := range run {
		for j := 0; j < len(run) && len(run) <= short && !x.over(); j++ {
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

// substitutes lets one member stand in for another one from some world.Action on, which
// may make a fault needless.
func (x *reducer) substitutes(run []world.Action) []world.Action {
	const short = 80
again:
	for i := range int32(x.model.sys.N) {
		for j := range int32(x.model.sys.N) {
			for k := 0; k < len(run) && len(run) <= short && !x.over(); k++ {
				if i == j || !run[k].Of(i) {
					continue
				}
				other := slices.Clone(run)
				for at := k; at < len(other); at++ {
					other[at] = other[at].With(i, j)
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

// further takes one world.Action away from a candidate that is good, but not shorter
// than run.
func (x *reducer) further(candidate, run []world.Action) ([]world.Action, bool) {
	if x.over() {
		return nil, false
	}
	if left, good := x.replay(candidate); !good || len(left) > len(run) {
		return nil, false
	}
	for k := range candidate {
		if shorter, good := x.try(leave(candidate, k), run); good {
			return shorter, true
		}
	}
	return nil, false
}
