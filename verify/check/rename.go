package check

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// renaming is a map of all processes, which tells what becomes of whom, as a function.
func renaming(to []uint8) func(protocol.ID) protocol.ID {
	return func(id protocol.ID) protocol.ID {
		if id < protocol.ID(len(to)) {
			return protocol.ID(to[id])
		}
		return id
	}
}

// permute returns the state of process i with members renamed, valid until the next call.
func (d *machine) permute(i int, state []byte, to []uint8) []byte {
	p := d.load(i, state)
	d.a.Permute(p, renaming(to))
	return d.encode(p)
}

// begins reports whether New makes the same of a process with members renamed.
func (d *machine) begins(i int, to []uint8) bool {
	renamed := bytes.Clone(d.permute(i, bytes.Clone(d.first(i)), to))
	return bytes.Equal(renamed, d.first(int(to[i])))
}

// A change is one of which an algorithm claims that it does not matter to steps: of the values of a
// counter, or of the names of members.
type change struct {
	state func(protocol.Process[any])
	msg   func(protocol.Channel, *any)  // nil: messages do not change
	name  func(protocol.ID) protocol.ID // nil: members keep their names
}

// moves reports whether steps do not depend on the values of counters: the same step with those of one
// counter moved does the same, for each counter. It tries a small and a large distance.
func (d *machine) moves(i int, state []byte, in protocol.Input, msg uint32) bool {
	counters := d.lows(i, state)
	for _, l := range d.messages.lows[msg] {
		counters = append(counters, low{counter: l.counter})
	}
	for _, l := range counters {
		for _, by := range []uint64{1, 100} {
			add := func(c protocol.Counter, v uint64) uint64 {
				if d.counters[c] == l.counter {
					v += by
				}
				return v
			}
			moved := change{
				state: func(p protocol.Process[any]) { d.a.MapState(p, add) },
				msg:   func(ch protocol.Channel, m *any) { d.a.MapMsg(ch, m, add) },
			}
			if !d.commutes(i, state, in, msg, moved) {
				return false
			}
		}
	}
	return true
}

// permutes reports whether a step does the same with members renamed.
func (d *machine) permutes(i int, state []byte, in protocol.Input, msg uint32, to []uint8) bool {
	name := renaming(to)
	return d.commutes(i, state, in, msg, change{name: name, state: func(p protocol.Process[any]) { d.a.Permute(p, name) }})
}

// commutes reports whether a step does the same after a change as before it.
func (d *machine) commutes(i int, state []byte, in protocol.Input, msg uint32, c change) (same bool) {
	defer func() { same = recover() == nil && same }()
	return d.changed(i, state, in, msg, c, true) == d.changed(i, state, in, msg, c, false)
}

// changed takes a step with a change before it, or else after it.
func (d *machine) changed(i int, state []byte, in protocol.Input, msg uint32, c change, before bool) string {
	p, m := d.load(i, state), d.msgs[msg]
	if before {
		if c.state(p); c.msg != nil && msg != 0 {
			c.msg(d.channel(msg), &m)
		}
		if c.name != nil {
			i = int(c.name(protocol.ID(i)))
			p = d.load(i, bytes.Clone(d.encode(p)))
			if in.Kind == protocol.Receive || in.Kind == protocol.Suspect || in.Kind == protocol.Restore {
				in.From = c.name(in.From)
			}
		}
	}
	var out protocol.Out[any]
	if p.Step(protocol.Event[any]{Input: in, Msg: m}, &out); !before {
		c.state(p)
	}
	b := protocol.AppendState(nil, p)
	var effects []string // with names: a broadcast reaches members in no order
	for _, e := range out.Effects {
		sends := e.Do == protocol.Send || e.Do == protocol.Broadcast
		switch {
		case c.name == nil:
			e.Act.Arg = 0 // a token may be the value of a counter
		case !before && (e.Do == protocol.Send || e.Do == protocol.Revoke):
			e.To = c.name(e.To)
		}
		if sends && !before && c.msg != nil {
			// The counters of a broadcast are those of each of its copies.
			c.msg(protocol.Channel{From: protocol.ID(i), To: e.To}, &e.Msg)
		}
		from := len(b)
		if sends {
			b = d.a.Append(b, e.Msg)
		}
		b = fmt.Appendf(b, "%d %d %d %d %s;", e.Do, e.To, e.Timer, e.Act.Arg, e.Data)
		if c.name != nil {
			effects, b = append(effects, string(b[from:])), b[:from]
		}
	}
	slices.Sort(effects)
	for _, text := range effects {
		b = append(b, text...)
	}
	return string(b)
}
