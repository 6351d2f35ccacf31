package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A Walk is one run of an algorithm within a Config, taken step by step: where Run
// takes every step that may come next, here somebody chooses. Counters are not
// moved, so that states and messages are those of the algorithm itself.
//
// A step does not say whether an idempotent message that it delivers may arrive
// again. So a Walk may be in several states at once, which differ by such messages
// only; a step is possible where it is possible in one of them.
type Walk struct {
	r      *searcher
	first  []uint32
	now    []end
	over   history.Fault // the last step violates a property, or the very first state does
	atRest int           // for OperationProgress: the step after which it was at rest, without a fault since; -1: none
	steps  []scenario.Event
	loop   int // the step with which a loop begins, or scenario.NoLoop
}

// An end is a state that a Walk may be in.
type end struct {
	st   []uint32
	ring *ring // nil: not in a loop
}

// mostEnds bounds the states that a Walk is in at once.
const mostEnds = 1 << 12

// NewWalk begins a run of a within c, whose Prefix it does not take. An error means
// that c is not a possible configuration.
func NewWalk[M any](a protocol.Algorithm[M], c Config) (*Walk, error) {
	erased := protocol.Erase(a)
	erased.Share(len(c.Wants) > 0)
	names, err := prepare(erased, &c)
	if err != nil {
		return nil, err
	}
	w := &Walk{r: newSearcher(crew{newWorkerOf(erased, c)}, names)}
	w.r.timers, w.r.raw = true, true
	w.first, w.over = w.r.initial(c.Entries)
	w.Reset()
	return w, nil
}

// Reset goes back to the beginning. What was computed is kept, so that many runs of
// one Walk cost less than as many Walks.
func (w *Walk) Reset() {
	w.steps, w.loop = nil, scenario.NoLoop
	if w.first == nil {
		return // there is not even a first state
	}
	w.now, w.over, w.atRest = []end{{st: w.first}}, history.Fault{}, -1
}

// Names are those of the processes.
func (w *Walk) Names() scenario.Names { return w.r.rules.Names }

// Possible returns the steps that may come next, faults within their budgets
// included.
func (w *Walk) Possible() []scenario.Step {
	var steps []scenario.Step
	var lines []string
	for _, e := range w.now {
		w.r.expand(e.st, every, func(v visit) {
			s := w.r.step(v.action, w.r.m)
			if l := w.r.rules.Names.Format(s); !slices.Contains(lines, l) {
				lines, steps = append(lines, l), append(steps, s)
			}
		})
	}
	return steps
}

// Take takes a step and returns what it did. An error is an *ImpossibleError, and
// leaves the Walk where it was.
func (w *Walk) Take(want scenario.Step) (scenario.Event, error) {
	if w.over != (history.Fault{}) {
		return scenario.Event{}, w.impossible(want, errors.New("the run is over: "+w.over.Text))
	}
	if want.At != 0 {
		return scenario.Event{}, w.impossible(want, fmt.Errorf("a check has no times: leave out %q", "at "+want.At.String()))
	}
	wanted := func(a action) bool {
		return w.over == (history.Fault{}) && verbs[a.verb] == want.Verb && same(want, w.r.step(a, w.r.m))
	}
	var event *scenario.Event
	var ends []end
	atRest := w.rested()
	for _, from := range w.now {
		w.r.expand(from.st, wanted, func(v visit) {
			v.problem = w.r.serious(v.problem)
			w.over = v.problem
			next := slices.Clone(v.next)
			if u := w.r.ejects(from.st, next); u >= 0 && atRest >= 0 && faultless(from.st, next) && w.over == (history.Fault{}) {
				w.over = w.r.ungrounded(u, atRest)
			}
			if event == nil {
				e := w.r.describe(from.st, v)
				event = &e
			}
			if !slices.ContainsFunc(ends, func(e end) bool { return e.ring == nil && slices.Equal(e.st, next) }) {
				ends = append(ends, end{next, from.ring.and(want, w.r.canonical(next))})
			}
		})
	}
	switch {
	case event == nil:
		return scenario.Event{}, w.impossible(want, w.why(want))
	case len(ends) > mostEnds:
		err := fmt.Errorf("too many messages that may arrive again: more than %d states", mostEnds)
		return scenario.Event{}, w.impossible(want, err)
	}
	if w.steps = append(w.steps, *event); !faultless(w.now[0].st, ends[0].st) {
		atRest = -1
	}
	w.now, w.atRest = ends, atRest
	return *event, nil
}

// rested is Walk.atRest before the next step.
func (w *Walk) rested() int {
	if w.atRest >= 0 || !slices.Contains(w.r.asked, OperationProgress) {
		return w.atRest
	}
	if _, rests := w.rests(w.now[0].st); rests {
		return len(w.steps)
	}
	return -1
}

// why says why want is not among the steps that may come next.
func (w *Walk) why(want scenario.Step) error {
	if !slices.Contains(verbs[:], want.Verb) {
		return fmt.Errorf("a check has no step %q", want.Verb)
	}
	var possible []string
	for _, s := range w.Possible() {
		if s.Verb == want.Verb {
			possible = append(possible, w.r.rules.Names.Format(s))
		}
	}
	if len(possible) > 0 {
		return fmt.Errorf("not possible here; possible are: %s", strings.Join(possible, "; "))
	}
	of := func(b Budget) bool {
		return b.Verb == want.Verb && (b.Verb != scenario.Suspect || !w.r.rules.Leases && !w.r.rules.Mutual)
	}
	if want.Verb == scenario.Lapse || slices.ContainsFunc(w.r.c.Budgets(), of) {
		return fmt.Errorf("not possible here: there is no process for it, or no budget left")
	}
	return fmt.Errorf("no %s is possible here", want.Verb)
}

// An ImpossibleError says which step cannot be taken, and why.
type ImpossibleError struct {
	Step scenario.Step
	Text string // the line
	Err  error
}

func (e *ImpossibleError) Error() string {
	where := ""
	if e.Step.Line > 0 {
		where = fmt.Sprintf("line %d: ", e.Step.Line)
	}
	return fmt.Sprintf("check: %s%q: %v", where, e.Text, e.Err)
}

func (e *ImpossibleError) Unwrap() error { return e.Err }

func (w *Walk) impossible(s scenario.Step, err error) error {
	return &ImpossibleError{s, w.r.rules.Names.Format(s), err}
}

// same compares two steps of a check. Parsing a line has reduced its spaces.
func same(a, b scenario.Step) bool {
	return a.Verb == b.Verb && slices.Equal(a.Procs, b.Procs) && a.Timer == b.Timer &&
		strings.Join(strings.Fields(a.Text), " ") == strings.Join(strings.Fields(b.Text), " ")
}

// Violation returns the property that the last step, or the state after it,
// violates, and why; without one err is nil. Only properties of c that a single
// state shows are judged, and Model always.
func (w *Walk) Violation() (property string, err error) {
	f := w.over
	for _, judge := range [...]func(st []uint32) history.Fault{w.violates, w.dead} {
		for _, e := range w.now {
			if f == (history.Fault{}) {
				f = judge(e.st)
			}
		}
	}
	if f == (history.Fault{}) {
		return "", nil
	}
	return f.Property, errors.New(f.Text)
}

func (w *Walk) violates(st []uint32) history.Fault { return w.r.violates(w.r.worker, st) }

// dead judges the normal form of a state: one whose clocks alone go on is stuck.
func (w *Walk) dead(raw []uint32) history.Fault {
	if st, rests := w.rests(raw); rests {
		return w.r.dead(st)
	}
	return history.Fault{}
}

// rests returns the normal form of a state, and whether nothing that must happen changes it.
func (w *Walk) rests(raw []uint32) (st []uint32, rests bool) {
	st = w.r.canonical(raw)
	w.r.raw = false
	defer func() { w.r.raw = true }()
	return st, w.r.stuck(st)
}

// Run is what happened so far, and how things stand. It is valid until Reset.
func (w *Walk) Run() scenario.Run {
	var st []uint32
	if len(w.now) > 0 {
		st = w.now[0].st
	}
	run := w.r.run(w.steps, st)
	run.Loop = w.loop
	return run
}
