package hunt

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// # Replicated objects and consensus
//
// Who is inside may issue operations, one after the other, up to Config.Operations in a section. Any proposal of a
// consensus instance may be its decision, of which those that take part hear one by one, in the order of instances.
// history.Weak judges what becomes of the copies of the object.
//
// A member that came back counts as crashed until it takes part again: see protocol.Algorithm.Spare.

// mostOperations is how many operations of a section a run draws at most.
const mostOperations = 4

// object draws what there is where users share an object.
func (p *plan) object(c *Config, i protocol.Info) {
	if !i.Weak {
		return
	}
	if len(p.Operations) == 0 {
		p.Operations = []int{p.between(1, mostOperations)}
	}
	p.operations = p.Operations[0]
	if i.Detector == protocol.UnreliableDetector && p.chance.IntN(2) == 0 {
		p.kinds |= storms
	}
	if p.has(crashes) && i.Tolerates&protocol.Recovery != 0 {
		p.kinds |= recoveries
	}
	p.kinds &^= c.without
	p.agrees = p.between(1, 20)
	if p.config.Operations = p.Operations; !p.timed {
		p.faulty, p.tries = p.between(1, 8)*p.faulty, 3*p.tries // what is wrong takes several faults in a row
	}
}

// may reports whether the user of i, which is inside, is to issue an operation next.
func (w *walker) may(i int) bool {
	const leaves = 8 // although it could issue more: one in so many
	return w.ops[i] > 0 && (w.calm || w.r.IntN(leaves) > 0)
}

// consent lets consensus decide, or tell a process what is decided.
func (w *walker) consent() bool {
	if w.Votes == nil {
		return false
	}
	if k := len(w.Votes.Proposals); k > 0 && (w.calm || w.r.IntN(2) == 0) && w.take(w.Decision(w.Votes.Proposals[w.r.IntN(k)])) {
		return true
	}
	first := w.r.IntN(w.sys.N)
	for k := range w.sys.N {
		if i := (first + k) % w.sys.N; w.Hears(i) && !w.still(i) {
			return w.take(world.Action{Verb: scenario.Hear, A: int32(i)})
		}
	}
	return false
}

// burst lets many suspicions happen at once, all of them mistakes: most members suspect one of them, or each another
// one.
func (w *walker) burst() (some bool) {
	const spared = 4 // one member in so many
	one, all := w.r.IntN(w.sys.N), w.r.IntN(2) == 0
	for _, i := range w.r.Perm(w.sys.N) {
		j := one
		if all {
			j = w.r.IntN(w.sys.N)
		}
		if w.Is(j) && w.r.IntN(spared) > 0 && w.Found == nil {
			some = w.take(world.Action{Verb: scenario.Suspect, A: int32(i), B: int32(j)}) || some
		}
	}
	return some
}

// converge is the end of a calm where there is an object: when nothing is left to happen all copies have executed
// the same. Then each user gets in once more, for who ends an epoch without end lets nobody in, and issues operations,
// of which each has an outcome: see history.Weak.Calm.
func (w *walker) converge() {
	for last := range 2 {
		w.rest()
		if w.Found != nil || last == 1 {
			return
		}
		for i := range w.tries {
			if w.Is(i) {
				w.tries[i] = 1
			}
		}
		w.finish()
	}
}

// rest takes steps until nothing is left to happen.
func (w *walker) rest() {
	patience := w.patience()
	for steps := 0; w.Found == nil && w.next(); steps++ {
		if steps > patience {
			w.Report(Stuck, fmt.Sprintf("stuck: nobody tries, and it does not come to rest in %d steps without a fault", steps))
		}
	}
	if w.Found == nil {
		w.Judged(w.Object.Unfinished())
	}
}
