package ra2

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

var model = protocol.Model[Message]{
	MapState: protocol.MapState[Message],
	MapMsg:   protocol.MapMsg(Message.fields),
	// A process that was invited once, and leads ever after, is remembered with its old number; and
	// while a process waits for a REPLY, another one may lead any number of times that wants
	// the same group.
	Bounds: []protocol.Bound{
		protocol.NewBound("requests apart", 3, func(p *Process) uint64 { return uint64(p.number) }),
		protocol.NewBound("timestamps apart", 6, func(p *Process) uint64 { return p.clock }),
	},
	Invariants: []protocol.Invariant{
		{Name: "ra2/invited", Err: oneGroup},
		{Name: "ra2/heard", Err: counted},
	},
}

// oneGroup is the invariant behind group exclusion: those who are inside, and those whose
// invitation is on its way, share one group.
func oneGroup(v *protocol.View) error {
	var in []*Process
	for _, p := range protocol.Procs[*Process](v) {
		if p.section == protocol.InCrit {
			in = append(in, p)
		}
	}
	for ch, m := range protocol.InFlight[Message](v) {
		p, _ := protocol.As[*Process](v.Procs[ch.To])
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
func counted(v *protocol.View) error {
	for i, p := range protocol.Procs[*Process](v) {
		for j, q := range protocol.Procs[*Process](v) {
			if i == j {
				continue
			}
			heard := q.heard[i]
			for ch, m := range protocol.InFlight[Message](v) {
				if m.Kind == Request && ch.From == i && ch.To == j {
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
