package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/scenario"
)

// A root is a state from which the search starts, with the way to it. There is
// one, unless a prefix delivers messages that may arrive again: its line does not
// say whether they do, so the search starts from each state that it may mean.
type root struct {
	state []uint32
	trace []line
}

// A line is one action of a trace, as text, with what it did.
type line struct {
	text    string
	effects []string
}

// A PrefixError says which step of Config.Prefix is impossible, and why.
type PrefixError struct {
	Step scenario.Step
	Text string // the line
	Err  error
}

func (e *PrefixError) Error() string {
	where := ""
	if e.Step.Line > 0 {
		where = fmt.Sprintf("line %d: ", e.Step.Line)
	}
	return fmt.Sprintf("check: prefix: %s%q: %v", where, e.Text, e.Err)
}

func (e *PrefixError) Unwrap() error { return e.Err }

// prefix takes the steps of Config.Prefix from first and fills the frontier with
// the states at its end. It judges the states on the way.
func (r *searcher) prefix(first []uint32) error {
	r.roots = []root{{state: first}}
	if property, err := r.violates(r.worker, first); err != nil {
		r.violated(property, err, nil)
		return nil
	}
	for _, want := range r.c.Prefix {
		if want.At != 0 {
			err := fmt.Errorf("a check has no times: leave out %q", "at "+want.At.String())
			return &PrefixError{want, r.names.Format(want), err}
		}
		var ends []root
		for _, from := range r.roots {
			r.expand(from.state, func(v visit) {
				if r.found != nil || !same(want, r.step(v.action, r.m)) {
					return
				}
				trace := append(slices.Clone(from.trace), r.describe(from.state, v))
				if v.problem != nil && (v.problem.property != WellFormed || r.wellFormed) {
					r.violated(v.problem.property, v.problem.err, trace)
					return
				}
				if slices.ContainsFunc(ends, func(e root) bool { return slices.Equal(e.state, v.next) }) {
					return
				}
				ends = append(ends, root{slices.Clone(v.next), trace})
				if property, err := r.violates(r.worker, v.next); err != nil {
					r.violated(property, err, trace)
				}
			})
			if r.found != nil {
				return nil
			}
		}
		if len(ends) == 0 {
			return &PrefixError{want, r.names.Format(want), r.impossible(want)}
		}
		r.roots = ends
	}
	for i, root := range r.roots {
		r.store.add(root.state, r.print(root.state), uint32(i), 0)
	}
	return nil
}

// same compares two steps of a check. Parsing a line has reduced its spaces.
func same(a, b scenario.Step) bool {
	return a.Verb == b.Verb && slices.Equal(a.Procs, b.Procs) && a.Timer == b.Timer &&
		strings.Join(strings.Fields(a.Text), " ") == strings.Join(strings.Fields(b.Text), " ")
}

// impossible says why want is not among the steps that may come next.
func (r *searcher) impossible(want scenario.Step) error {
	if !slices.Contains(verbs[:], want.Verb) {
		return fmt.Errorf("a check has no step %q", want.Verb)
	}
	var possible []string
	r.expand(r.roots[0].state, func(v visit) {
		if l := r.line(v.action, r.m); !slices.Contains(possible, l) && verbs[v.verb] == want.Verb {
			possible = append(possible, l)
		}
	})
	if len(possible) > 0 {
		return fmt.Errorf("not possible here; possible are: %s", strings.Join(possible, "; "))
	}
	fault := want.Verb == scenario.Amnesia || want.Verb == scenario.Crash || want.Verb == scenario.Lapse ||
		want.Verb == scenario.Cancel || want.Verb == scenario.Drain || want.Verb == scenario.Lose ||
		want.Verb == scenario.Duplicate
	if fault {
		return fmt.Errorf("not possible here: there is no process for it, or no budget left")
	}
	return fmt.Errorf("no %s is possible here", want.Verb)
}

// trace returns the way to state i, and from it the further actions given.
func (r *searcher) trace(i uint32, further ...uint16) []line {
	top, ordinals := r.store.links.path(i)
	from := r.roots[top]
	st, trace := from.state, slices.Clone(from.trace)
	for _, want := range append(ordinals, further...) {
		k := uint16(0)
		var next []uint32
		r.expand(st, func(v visit) {
			if k == want {
				trace = append(trace, r.describe(st, v))
				next = slices.Clone(v.next)
			}
			k++
		})
		st = next
	}
	return trace
}

// describe writes down an action and what it did.
func (r *searcher) describe(st []uint32, v visit) line {
	l := line{text: r.line(v.action, r.m)}
	add := func(format string, args ...any) { l.effects = append(l.effects, fmt.Sprintf(format, args...)) }
	if v.problem != nil {
		add("%v", v.problem.err)
		return l
	}
	for i := range r.total {
		if before, after := st[1+i], v.next[1+i]; before != 0 && after != 0 {
			name := r.names.Of(protocol.ID(i))
			if a, b := r.locals[before].section, r.locals[after].section; a != b {
				add("%s: %s", name, sections[b])
			}
		}
	}
	for _, msg := range v.sends {
		to := r.mail.to(msg)
		vanishes := ""
		if st[1+to] == 0 {
			vanishes = ", which is not there"
		}
		add("%s sends %s to %s%s", r.names.Of(protocol.ID(r.mail.from(msg))), r.m.text(msg),
			r.names.Of(protocol.ID(to)), vanishes)
	}
	return l
}

var sections = [...]string{
	protocol.InRem: "rem", protocol.InTry: "try", protocol.InCrit: "crit", protocol.InLost: "ejected",
	protocol.InExit: "exit",
}
