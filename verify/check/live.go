package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check/internal/lasso"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A Mark is an index in a trace, or NoLoop.
type Mark int

// NoLoop is the mark of a trace that ends with its violation.
const NoLoop Mark = scenario.NoLoop

// IsZero lets encoding/json leave out NoLoop.
func (m Mark) IsZero() bool { return m == NoLoop }

// A question is a property of infinite runs: it looks at all that was explored for a
// run that violates it. It may add to the result what it measured.
type question struct {
	name string
	ask  func(*live, *Property) *finding
}

// Progress stands before starvation, which follows from a violation of it.
var questions = []question{
	{MakesProgress, (*live).progress},
	{Starvation, (*live).starvation},
	{OperationProgress, (*live).operationProgress},
	{ConcurrentEntry, (*live).concurrentEntry},
	{Bypass, (*live).bypass},
	{Termination, (*live).termination},
}

// endless reports whether a property is one of infinite runs.
func endless(name string) bool {
	return slices.ContainsFunc(questions, func(q question) bool { return q.name == name })
}

// live answers questions.
type live struct {
	*graph
	solver *lasso.Solver
}

// answers reports whether the search has to answer questions: those that may wait for
// timers wait for the search in which they fire.
func (r *searcher) answers() bool {
	return r.lasting && (r.timers || r.c.Timers == NeverFire || !r.timersSet)
}

// answer answers the questions that were asked for, after a search without a
// violation. If something was not explored, what was may still contain a run that
// violates a property, but cannot show that there is none.
func (r *searcher) answer(complete bool) {
	whole := complete && len(r.cuts) == 0
	g := newGraph(r)
	l := &live{g, lasso.New(g, r.interrupted)}
	for _, q := range questions {
		if !slices.Contains(r.asked, q.name) || r.interrupted() {
			continue
		}
		p := r.property(q.name, Undecided)
		found := q.ask(l, &p)
		switch {
		case found != nil:
			found.Property = q.name
			p.violatedBy(found)
			if r.found == nil {
				r.found = found
			}
		case whole && !l.solver.Stopped() && !r.interrupted():
			p.Verdict = Holds
		}
		r.answered[q.name] = p
	}
}

// answerBytes is what answer needs for what was found so far.
func (r *searcher) answerBytes() int64 {
	if !r.lasting {
		return 0
	}
	states := int64(r.store.len())
	each := int64(lasso.Bytes + graphBytes)
	if slices.Contains(r.asked, OperationProgress) {
		each += progressBytes
	}
	if slices.Contains(r.asked, Bypass) {
		each += 4 * int64(1+r.rules.Total)
	}
	return states*each + 4*r.transitions
}

// starvation: a user never stays in its trying or in its exit section for ever. The run is
// one in which the first user that can starve does; all who wait in all of its
// loop are named.
func (l *live) starvation(*Property) *finding {
	for u := range l.rules.Total {
		run := l.solver.Fair(func(s uint32) bool { return waits(l.section(s, u)) && l.enough(l.store.state(s)) })
		if run != nil {
			return l.finding(run, "starvation: "+strings.Join(l.starving(run), ", "))
		}
	}
	return nil
}

// starving says who waits in all states of a loop, and for what.
func (l *live) starving(run *lasso.Lasso) (list []string) {
	for u := range l.rules.Total {
		at := l.section(run.First, u)
		eats := func(a lasso.Arc) bool { return !waits(l.section(a.From, u)) }
		switch name := l.rules.Names.Of(protocol.ID(u)); {
		case !waits(at) || slices.ContainsFunc(run.Loop, eats):
		case at == protocol.InIssue:
			list = append(list, name+" waits for ever for the outcome of its operation")
		case at == protocol.InExit:
			list = append(list, name+" waits for ever to be told rem")
		default:
			list = append(list, name+" tries for ever")
		}
	}
	return list
}

// progress: it never happens that from some point on somebody is trying or exiting all
// the time, and nobody is ever inside.
func (l *live) progress(*Property) *finding {
	run := l.solver.Fair(func(s uint32) bool {
		st := l.store.state(s)
		return l.halted(st) && l.enough(st)
	})
	return l.finding(run, "progress: from here on somebody waits all the time, and "+l.noProgress())
}

// finding describes an infinite run; nil: there is none.
func (l *live) finding(run *lasso.Lasso, what string) *finding {
	if run == nil {
		return nil
	}
	places := make([]uint16, len(run.Loop))
	for i, a := range run.Loop {
		places[i] = uint16(a.Place)
	}
	trace := l.trace(run.First, places...)
	trace.Loop = len(trace.Steps) - len(places)
	switch {
	case len(places) == 0:
		what += ": nothing is left that must happen"
	default:
		what += fmt.Sprintf(": the loop of the last %s leads back to its beginning, and may be taken again and again",
			Plural(int64(len(places)), "step"))
	}
	return &finding{history.Fault{Text: what}, trace, 0}
}
