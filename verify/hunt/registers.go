package hunt

import (
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// memory draws the kind of registers.
func (p *plan) memory(i protocol.Info) {
	if i.Registers == nil || p.Registers != "" {
		return
	}
	if p.Registers = protocol.Atomic; p.chance.IntN(2) == 0 {
		p.Registers = protocol.Safe
	}
}

// renumbered says, for each register of a list, which one it is in the list of the same system
// without process i, -1 if none: those of one owner keep their order, and processes behind i
// have moved up.
func renumbered(list, fewer []protocol.Register, i protocol.ID) []int32 {
	of := map[protocol.ID][]int32{} // those of an owner in fewer
	for k, r := range fewer {
		of[r.Owner] = append(of[r.Owner], int32(k))
	}
	number := make([]int32, len(list))
	for k, r := range list {
		owner := r.Owner
		if number[k] = -1; owner == i {
			continue
		}
		if owner > i && owner != protocol.Shared {
			owner--
		}
		if rest := of[owner]; len(rest) > 0 {
			number[k], of[owner] = rest[0], rest[1:]
		}
	}
	return number
}

// share lets one process go on with an access: any of them, or in an order of priorities that changes at
// times. In a calm all take turns, and a read that overlaps a write finds the old value.
func (w *walker) share() bool {
	if w.Memory == nil {
		return false
	}
	found := func(r int) uint64 {
		if w.calm {
			return w.Cells[r].Value
		}
		most := w.Memory[r].Most
		if most+1 == 0 {
			return w.r.Uint64()
		}
		return w.r.Uint64N(most + 1)
	}
	first := w.r.IntN(w.Total)
	switch {
	case w.calm:
		first = w.looked
	case w.p.order == channels || w.p.order == receivers:
		first = int(w.salt % uint64(w.Total))
	}
	for k := range w.Total {
		i := (first + k) % w.Total
		if !w.Is(i) || w.still(i) || len(w.Ends[i].Open) == 0 {
			continue
		}
		open := w.Ends[i].Open
		from := w.r.IntN(len(open))
		for j := range open {
			o := &open[(from+j)%len(open)]
			v := found(o.Register)
			if w.Next(o, v) != "" {
				w.looked = i + 1
				return w.take(world.Action{Verb: scenario.Read, A: int32(i), Kind: int32(o.Register), Found: v})
			}
		}
	}
	return false
}
