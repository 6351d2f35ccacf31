package check

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// The properties of every election, by name. Those of users it has not.
const (
	// Epochs: no two processes ever name different leaders of one epoch, and none names an
	// earlier epoch than before in the same life.
	Epochs = history.Epochs
	// Agreement: when nothing that must happen is left to happen, all live processes name
	// the live one with the highest id.
	Agreement = history.Agreement
	// OneLeader: never do two live processes each name themselves. No election need promise
	// it while it goes on: "all" does not contain it.
	OneLeader = "one-leader"
	// Termination: every run comes to a state that nothing which must happen changes. It is
	// about infinite runs, like Starvation.
	Termination = "termination"
)

// properties returns the names of those that an algorithm has: those of finite runs, its own
// invariants among them, and those that are judged only where they are asked for.
func properties[M any](a protocol.Algorithm[M]) (all, beyond []string) {
	switch {
	case a.Users == protocol.Nobody:
		all, beyond = []string{Epochs, Agreement, Model}, []string{OneLeader, Termination}
	case a.Weak:
		all = append([]string{WellFormed, Deadlock, history.Lagging}, append(slices.Clone(ofObjects), Model)...)
		beyond = []string{Exclusion, MakesProgress, Starvation, OperationProgress, Bypass}
	default:
		all, beyond = []string{Exclusion, WellFormed, Deadlock, Model}, []string{Kept, MakesProgress, Starvation, Bypass}
	}
	if a.Grouped {
		beyond = append(beyond, ConcurrentEntry)
	}
	for _, i := range a.Invariants {
		all = append(all, i.Name)
	}
	return all, beyond
}

// leaders is what each process says in a state of who leads. It is valid until the next
// call.
func (x *worker) leaders(st []uint32) history.Leaders {
	x.says = x.rules.Leaders(x.endsOf(st, x.later), x.says[:0])
	return x.says
}

// misled is how a state violates a property of elections by itself.
func (r *searcher) misled(x *worker, st []uint32) history.Fault {
	if r.asks(Epochs) {
		for i, n := range st[1 : 1+x.rules.Config.N] {
			for _, m := range st[2+i : 1+x.rules.Config.N] {
				if err := x.locals[n].Past.Agree(x.locals[m].Past, x.rules.Names.Of); err != nil {
					return history.Fault{Property: Epochs, Text: err.Error()}
				}
			}
		}
	}
	if r.asks(OneLeader) {
		if err := x.leaders(st).One(x.rules.Names.Of); err != nil {
			return history.Fault{Property: OneLeader, Text: err.Error()}
		}
	}
	return history.Fault{}
}

// termination: every fair run comes to a state that nothing which must happen changes.
func (l *live) termination(*Property) *finding {
	run := l.solver.Fair(func(s uint32) bool { return !l.idle.has(uint64(s)) && !l.still.has(uint64(s)) })
	return l.finding(run, "termination: the election goes on for ever")
}
