package check

import (
	"math"
)

// Synchronous is the model of a time-out that exceeds a round trip: an armed timer fires
// only while no message from its process or to it is on its way, nor news of a detector.
// What waits for a time-out that is possible again and again gets it.
const Synchronous Timers = "synchronous"

// absent reports whether process i is not there: never up, or crashed.
func (s *space) absent(st []uint32, i int) bool {
	return st[1+i] != math.MaxUint32 && s.summaries[st[1+i]].gone
}

// enough reports whether who tries may count on the members that are up in a state. One that came
// back counts as crashed as long as it is unsettled.
func (x *worker) enough(st []uint32) bool {
	if !x.rules.Info.Majority {
		return true
	}
	unsettled := 0
	if x.budget>>recoverBudget&maxBudget > 0 {
		unsettled = x.unsettled(st)
	}
	return x.rules.Enough(x.endsOf(st, x.later), unsettled)
}

// remains returns what is left of process p when it crashes: what its next life begins with,
// and whom it named.
func (x *worker) remains(p int) uint32 {
	if !x.rules.Peers {
		return 0
	}
	l := &x.locals[x.st[1+p]]
	left := local{End: x.rules.Crashed(&l.End), proc: p}
	if x.budget>>recoverBudget&maxBudget == 0 {
		if left.Past == nil {
			return 0
		}
		left.Life, left.Issued = 0, 0
	} else {
		left.entries = l.entries
	}
	return x.intern(left)
}

// waiting reports whether a timer of process i does not fire yet because time-outs are
// bounded: see Synchronous.
func (x *worker) waiting(i int) bool {
	if !x.bounded {
		return false
	}
	st := x.st
	for _, msg := range st[x.flight:] {
		l := &x.messages.all[msg]
		if (int(l.from) == i || int(l.to) == i) && !l.stays(x.forgets) {
			return true
		}
	}
	return x.rules.Peers && !x.rules.Told(x.ends, i)
}
