package ra2

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

var model = protocol.Model[Message]{
	MapState: protocol.MapState[Message],
	MapMsg:   protocol.MapMsg(Message.fields),
	// Who was invited once, and leads ever after, is remembered with its old number; and
	// while a process waits for a REPLY, another one may lead any number of times that wants
	// the same group.
	Bounds: []protocol.Bound[Message]{
		{Name: "requests apart", Max: 3, Of: func(p protocol.Process[Message]) uint64 { return uint64(p.(*Process).number) }},
		{Name: "timestamps apart", Max: 6, Of: func(p protocol.Process[Message]) uint64 { return p.(*Process).clock }},
	},
	Invariants: []protocol.Invariant[Message]{
		{Name: "ra2/invited", Err: oneGroup},
		{Name: "ra2/heard", Err: counted},
	},
}

// oneGroup is the invariant behind group exclusion: those who are inside, and those whose
// invitation is on its way, share one group.
func oneGroup(v *protocol.View[Message]) error {
	var in []*Process
	for _, q := range v.Procs {
		if p := q.(*Process); p.section == protocol.InCrit {
			in = append(in, p)
		}
	}
	for ch, m := range v.InFlight {
		p := v.Procs[ch.To].(*Process)
		if m.Kind == Start && p.section == protocol.InTry && m.Number == p.number {
			in = append(in, p)
		}
	}
	for i, p := range in {
		for _, q := range in[:i] {
			if p != q && !p.group.Shares(q.group) {
				return fmt.Errorf("ra2: #%d and #%d are inside or invited, for %s and %s", q.id, p.id, q.group, p.group)
			}
		}
	}
	return nil
}

// counted: with what is on its way, everybody has heard of every request, and nobody knows
// of a grant of what was not requested.
func counted(v *protocol.View[Message]) error {
	for i := range v.Procs {
		p := v.Procs[i].(*Process)
		for j := range v.Procs {
			q := v.Procs[j].(*Process)
			if i == j {
				continue
			}
			heard := q.heard[i]
			for ch, m := range v.InFlight {
				if m.Kind == Request && int(ch.From) == i && int(ch.To) == j {
					heard++
				}
			}
			if heard != p.number || q.granted.numbers[i] > p.number {
				return fmt.Errorf("ra2: #%d made %d requests; #%d counts %d, and knows that number %d was granted",
					i, p.number, j, heard, q.granted.numbers[i])
			}
		}
	}
	return nil
}
