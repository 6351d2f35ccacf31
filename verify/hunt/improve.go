package hunt

import (
	"math/rand/v2"
	"slices"

	"github.com/poundlock/poundlock/verify/world"
)

// pair takes away any two choices, and of short runs any three.
func (x *reducer) pair() (good bool) {
	const short, shortest = 200, 45
	n := len(x.run)
	for i := range n {
		for j := i + 1; j < n && n <= short && !x.over(); j++ {
			if x.try(leave(x.run, i, j)) {
				return true
			}
			for k := j + 1; k < n && n <= shortest; k++ {
				if x.try(leave(x.run, i, j, k)) {
					return true
				}
			}
		}
	}
	return false
}

// again makes untimed runs of what is left of the system, with the faults of the run:
// a short one may be there that no subset of the run is.
func (x *reducer) again() {
	const runs = 20_000
	if waits(x.property) {
		return
	}
	m, run := x.model, x.run
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
		// Losses that aim at somebody come together, so that a storm may be longer.
		if x.taken += len(w.run); m.Found != nil && m.Found.Property == x.property && x.try(w.run) {
			return
		}
	}
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

// move puts any world.Action anywhere else, which may make others needless.
func (x *reducer) move() (good bool) {
	const short = 80
	n := len(x.run)
	for i := range n {
		for j := 0; j < n && n <= short && !x.over(); j++ {
			moved := slices.Insert(leave(x.run, i), j, x.run[i])
			if i != j && (x.try(moved) || x.further(moved)) {
				return true
			}
		}
	}
	return false
}

// substitute lets one member stand in for another one from some world.Action on, which
// may make a fault needless.
func (x *reducer) substitute() (good bool) {
	const short = 80
	for i := range int32(x.model.sys.N) {
		for j := range int32(x.model.sys.N) {
			for k := 0; k < len(x.run) && len(x.run) <= short && !x.over(); k++ {
				if i == j || !x.run[k].Of(i) {
					continue
				}
				other := slices.Clone(x.run)
				for at := k; at < len(other); at++ {
					other[at] = other[at].With(i, j)
				}
				if x.further(other) {
					return true
				}
			}
		}
	}
	return false
}

// further takes one world.Action away from a candidate that is good, but not shorter
// than the run.
func (x *reducer) further(candidate []world.Action) (good bool) {
	if x.over() {
		return false
	}
	if left, good := x.replay(candidate); !good || len(left) > len(x.run) {
		return false
	}
	for k := range candidate {
		if x.try(leave(candidate, k)) {
			return true
		}
	}
	return false
}
