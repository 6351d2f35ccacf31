package check

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check/internal/lasso"
)

// Overtaking says how many entries of others can happen while one user tries: a bound
// of runs as they were explored, fair or not.
type Overtaking struct {
	All int `json:"all"` // entries of all others
	One int `json:"one"` // entries of one other
}

// bypass: while a user tries, others enter a bounded number of times. The bound is the
// largest number of entries on a way through states in which the user tries. Fairness
// does not matter: a loop with an entry, unfair or not, can be taken as often as one
// likes before the run goes on as a fair one does.
func (l *live) bypass(p *Property) *finding {
	bound := Overtaking{}
	for u := range l.rules.Total {
		w := l.overtaken(u)
		if w == nil {
			return nil // stopped
		}
		if w.cycle != nil {
			what := fmt.Sprintf("bypass: while %s tries, %s enters as often as it likes", l.rules.Names.Of(protocol.ID(u)), l.rules.Names.Of(protocol.ID(w.other)))
			return l.finding(w.cycle, what)
		}
		bound.All, bound.One = max(bound.All, w.most.All), max(bound.One, w.most.One)
	}
	p.Bound = &bound
	return nil
}

// A wait is what can happen while a user tries.
type wait struct {
	most  Overtaking
	cycle *lasso.Lasso // a loop in which other enters
	other int
}

// overtaken goes over the strongly connected components of the states in which user u
// tries, last ones first: from all states of one, as many entries can follow.
func (l *live) overtaken(u int) *wait {
	w := &wait{}
	// by[i] is how many entries of all others (0), and of user i-1, can follow in the
	// component with that number; of is the number of a state's component.
	width := 1 + l.rules.Total
	var by blocks[uint32]
	of := make([]uint32, l.Len())
	row := make([]uint32, width)
	l.solver.Components(func(s uint32) bool { return l.section(s, u) == protocol.InTry }, func(c []uint32) {
		if w.cycle != nil {
			return
		}
		number := uint32(by.n/width) + 1
		for _, s := range c {
			of[s] = number
		}
		clear(row)
		for _, s := range c {
			for k, to := range l.Edges(s) {
				if to == lasso.Nowhere || of[to] == 0 {
					continue
				}
				other := l.enters(s, to)
				if of[to] == number {
					if other >= 0 {
						w.other, w.cycle = other, l.solver.Cycle(slices.Clone(c), lasso.Arc{From: s, Place: k})
						return
					}
					continue
				}
				for i := range row {
					n := by.at((int(of[to])-1)*width + i)
					if other >= 0 && (i == 0 || i == other+1) {
						n++
					}
					row[i] = max(row[i], n)
				}
			}
		}
		for i, n := range row {
			by.add(n)
			if i == 0 {
				w.most.All = max(w.most.All, int(n))
			} else {
				w.most.One = max(w.most.One, int(n))
			}
		}
	})
	if l.solver.Stopped() {
		return nil
	}
	return w
}

// enters returns the user that enters by a step, or -1.
func (l *live) enters(from, to uint32) int {
	a, b := l.store.state(from), l.store.state(to)
	for u := range l.rules.Total {
		if a[1+u] != b[1+u] && inCritical(l.summaries[b[1+u]].section) && !inCritical(l.summaries[a[1+u]].section) {
			return u
		}
	}
	return -1
}

func inCritical(s protocol.Section) bool {
	return s == protocol.InCrit || s == protocol.InIssue || s == protocol.InLost
}
