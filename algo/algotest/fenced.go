package algotest

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// Fencing is the invariant of Fenced.
const Fencing = "fencing"

// Fenced is an algorithm with an invariant about fencing tokens, and with none of what shrinks its models: whoever is inside
// has a token larger than that of everybody who was inside before, unless they share. Processes remember what they had.
func Fenced[M any](a protocol.Algorithm[M]) protocol.Algorithm[M] {
	create := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[M] { return &fenced[M]{Process: create(id, c)} }
	a.Model = protocol.Model[M]{
		Bounds:     a.Bounds,
		Invariants: append(a.Invariants[:len(a.Invariants):len(a.Invariants)], protocol.Invariant{Name: Fencing, Err: fencing[M]}),
	}
	return a
}

// fencing: where entries have fencing tokens, small models have the property.
func (s *suite) fencing() error {
	if s.alg.Users != protocol.Members || slices.Contains(s.alg.Refuted, check.Exclusion) {
		return errNothing
	}
	has := false
	if err := s.walk(func(st step) error {
		has = has || slices.ContainsFunc(st.effects, func(e protocol.Effect[any]) bool { return e.Do == protocol.Crit && e.Arg > 0 })
		return nil
	}); err != nil {
		return err
	}
	if !has {
		return errNothing
	}
	for _, c := range []check.Config{{Config: protocol.Config{N: 2}, Entries: []int{2}}, {Config: protocol.Config{N: 3}, Entries: []int{1}}} {
		if s.alg.Grouped {
			c.Wants = [][]protocol.Groups{{"1", protocol.Alone + "w"}}
		}
		c.Options, c.MaxMemory, c.Properties = s.Options.Options, smallMemory, []string{Fencing}
		if err := holds(Fenced(s.alg), c); err != nil {
			return err
		}
	}
	return nil
}

// fenced is a process that remembers its entries.
type fenced[M any] struct {
	protocol.Process[M]
	inside  bool // in the last one of
	entries []entry
}

type entry struct {
	group string
	token uint64
}

// Unwrap returns the process.
func (p *fenced[M]) Unwrap() any { return p.Process }

// Step implements protocol.Process.
func (p *fenced[M]) Step(ev protocol.Event[M], out *protocol.Out[M]) {
	if ev.Kind == protocol.Exit {
		p.inside = false
	}
	before := len(out.Effects)
	p.Process.Step(ev, out)
	for i := range out.Effects[before:] {
		switch e := &out.Effects[before+i]; e.Do {
		case protocol.Crit:
			p.inside, p.entries = true, append(p.entries, entry{e.Data, e.Arg})
		case protocol.Ejected:
			p.inside = false
		}
	}
}

// State implements protocol.Process.
func (p *fenced[M]) State(c *protocol.Codec) {
	c.Bool(&p.inside)
	for i := range protocol.List(c, &p.entries) {
		v := &p.entries[i]
		protocol.Text(c, &v.group)
		c.Uint(&v.token)
	}
	c.Want(!p.inside || len(p.entries) > 0)
	p.Process.State(c)
}

func fencing[M any](v *protocol.View) error {
	all := protocol.Procs[*fenced[M]](v)
	for id, p := range all {
		if !p.inside {
			continue
		}
		now := p.entries[len(p.entries)-1]
		for j, q := range all {
			for i, then := range q.entries {
				over := !q.inside || i < len(q.entries)-1
				if over && then.token >= now.token && !protocol.Group(then.group).Shares(protocol.Group(now.group)) {
					return fmt.Errorf("#%d is inside with token %d, and #%d was with %d", id, now.token, j, then.token)
				}
			}
		}
	}
	return nil
}
