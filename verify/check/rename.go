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

// permute returns the state of process i with members renamed, valid until the
// next call; permuteMessage does so with a message and its channel.
func (d *machine) permute(i int, state []byte, to []uint8) []byte {
	p := d.load(i, state)
	d.a.Permute(p, renaming(to))
	return d.encode(p)
}

func (d *machine) permuteMessage(msg uint32, to []uint8) uint32 {
	return d.intern(int(to[d.messages.from(msg)]), int(to[d.messages.to(msg)]), d.msgs[msg])
}

// appendMessage appends what a message holds: no ids of members.
func (d *machine) appendMessage(b []byte, msg uint32) []byte { return d.a.Append(b, d.msgs[msg]) }

// begins reports whether New makes the same of a process with members renamed.
func (d *machine) begins(i int, to []uint8) bool {
	renamed := bytes.Clone(d.permute(i, bytes.Clone(d.first(i)), to))
	return bytes.Equal(renamed, d.first(int(to[i])))
}

// permutes reports whether a step does the same with members renamed.
func (d *machine) permutes(i int, state []byte, in protocol.Input, msg uint32, to []uint8) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return d.renamed(i, state, in, msg, to, true) == d.renamed(i, state, in, msg, to, false)
}

// renamed takes a step with members renamed before it, or else after it.
func (d *machine) renamed(i int, state []byte, in protocol.Input, msg uint32, to []uint8, before bool) string {
	f, m := renaming(to), d.msgs[msg]
	if before {
		state, i = bytes.Clone(d.permute(i, state, to)), int(to[i])
		if in.Kind == protocol.Receive || in.Kind == protocol.Suspect || in.Kind == protocol.Restore {
			in.From = f(in.From)
		}
	}
	p := d.load(i, state)
	var out protocol.Out[any]
	p.Step(protocol.Event[any]{Input: in, Msg: m}, &out)
	if !before {
		d.a.Permute(p, f)
	}
	var effects []string // a broadcast reaches members in no order
	for _, e := range out.Effects {
		if !before && (e.Do == protocol.Send || e.Do == protocol.Revoke) {
			e.To = f(e.To)
		}
		text := fmt.Sprintf("%d %d %d %d %q ", e.Do, e.To, e.Timer, e.Act.Arg, e.Data)
		if e.Do == protocol.Send || e.Do == protocol.Broadcast {
			text += string(d.a.Append(nil, e.Msg))
		}
		effects = append(effects, text)
	}
	slices.Sort(effects)
	return fmt.Sprintf("%x %q", protocol.AppendState(nil, p), effects)
}
