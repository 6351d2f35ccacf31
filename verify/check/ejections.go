package check

import (
	"math"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check/internal/lasso"
	"github.com/poundlock/poundlock/verify/history"
)

// OperationProgress: once nobody is suspected by mistake any more, each operation that is issued has an outcome.
// That its user does not wait for ever is Starvation. Here it is that nobody is ejected: not in a run that has
// come to a state that nothing which must happen changes, and in which nobody was suspected by mistake since,
// crashed, or came back. In such a state the failure detectors suspect exactly those that crashed.
const OperationProgress = history.OperationProgress

// operationProgress goes from all states at rest along all steps that are no faults.
func (l *live) operationProgress(*Property) *finding {
	const unseen = math.MaxUint32
	before, place := make([]uint32, l.Len()), make([]uint16, l.Len()) // the step by which a state was reached
	var reached []uint32
	for s := range before {
		if before[s] = unseen; l.rests(uint32(s)) {
			before[s], reached = uint32(s), append(reached, uint32(s))
		}
	}
	for i := 0; i < len(reached); i++ {
		s := reached[i]
		st := l.store.state(s)
		for k, to := range l.Edges(s) {
			if to == lasso.Nowhere || !faultless(st, l.store.state(to)) {
				continue
			}
			if u := l.ejects(st, l.store.state(to)); u >= 0 {
				places := []uint16{uint16(k)}
				for ; before[s] != s; s = before[s] {
					places = append([]uint16{place[s]}, places...)
				}
				run := l.trace(s, places...)
				return &finding{l.ungrounded(u, len(run.Steps)-len(places)), run, 0}
			}
			if before[to] == unseen {
				before[to], place[to], reached = s, uint16(k), append(reached, to)
			}
		}
	}
	return nil
}

// progressBytes is what operationProgress needs for each state.
const progressBytes = 4 + 2 + 4

// ungrounded says that user u is ejected, in a run that was at rest after some steps.
func (s *space) ungrounded(u, steps int) history.Fault {
	return fault(OperationProgress, "%s is ejected, and nobody was suspected by mistake, crashed or came back since everything was at rest, after %s",
		s.rules.Names.Of(protocol.ID(u)), Plural(int64(steps), "step"))
}

// faultless reports whether a step from one state to another one is no fault: to give up a try is none.
func faultless(from, to []uint32) bool { return (from[0]^to[0])&^(maxBudget<<cancelBudget) == 0 }

// ejects returns the user that is ejected in a step from one state to another one, or -1.
func (s *space) ejects(from, to []uint32) int {
	for u := range s.rules.Total {
		lost := func(st []uint32) bool { return s.summaries[st[1+u]].section == protocol.InLost }
		if lost(to) && !lost(from) {
			return u
		}
	}
	return -1
}
