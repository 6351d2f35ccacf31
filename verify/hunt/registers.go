package hunt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A cell is one register.
type cell struct {
	value   uint64
	writers int // safe writes that have begun and not ended
}

// checkRegisters refuses what means nothing where memory is shared. Without a kind of registers each run
// draws one.
func (c *Config) checkRegisters(i protocol.Info) error {
	system := c.Config
	system.N = max(1, c.N)
	if _, _, err := i.Memory(system, c.Registers); err != nil {
		return err
	}
	if i.Registers != nil && c.FIFO {
		return fmt.Errorf("FIFO channels: %w", protocol.ErrRegisters)
	}
	return nil
}

// memory draws the kind of registers.
func (p *plan) memory(c *Config, i protocol.Info) {
	if i.Registers == nil {
		return
	}
	if p.registers = c.Registers; p.registers == "" {
		p.registers = protocol.Atomic
		if p.chance.IntN(2) == 0 && !i.Atomic {
			p.registers = protocol.Safe
		}
	}
}

// resetMemory begins a run of the shared memory.
func (m *model[M]) resetMemory() {
	m.cells = fresh(m.cells, len(m.list))
	for r := range m.cells {
		m.cells[r].value = m.list[r].Initial
	}
}

// open begins an access.
func (m *model[M]) open(i int, a protocol.Act) {
	p := &m.procs[i]
	open, err := p.open.Open(m.list, protocol.ID(i), a)
	if err != nil {
		m.report(check.Model, "model: "+m.names().Text(err.Error()))
		return
	}
	p.open = open
}

// ready is the verb of what may happen next to an access, "" if it waits.
func (m *model[M]) ready(o *protocol.Access, found uint64) scenario.Verb {
	switch c := &m.cells[o.Register]; {
	case o.Do == protocol.Write && m.sys.registers == protocol.Safe && !o.Begun:
		return scenario.Begin
	case o.Do == protocol.Write:
		return scenario.Write
	case c.writers == 0 && !o.Ends(c.value), c.writers > 0 && !o.Ends(m.bounded(o, found)):
		return ""
	}
	return scenario.Read
}

// bounded is a value that a read may find which overlaps a write.
func (m *model[M]) bounded(o *protocol.Access, found uint64) uint64 {
	return min(found, m.list[o.Register].Most)
}

// access takes the access of choice c, or another one of the same process that is possible; c then names that one.
func (m *model[M]) access(c *choice) bool {
	p := &m.procs[c.a]
	o := p.open.Of(int(c.kind))
	if o == nil || m.ready(o, c.found) == "" {
		k := slices.IndexFunc(p.open, func(o protocol.Access) bool { return m.ready(&o, c.found) != "" })
		if k < 0 {
			return false
		}
		o = &p.open[k]
	}
	c.verb, c.kind = m.ready(o, c.found), int32(o.Register)
	m.accessed(c, *o)
	return true
}

// accessed lets an access begin or end.
func (m *model[M]) accessed(c *choice, o protocol.Access) {
	p, at := &m.procs[c.a], &m.cells[o.Register]
	in := protocol.Input{Kind: protocol.Value, From: protocol.ID(o.Register)}
	switch c.verb {
	case scenario.Begin:
		p.open.Of(o.Register).Begun = true
		at.writers++
		return
	case scenario.Write:
		if at.value = o.Arg; o.Begun {
			at.writers--
		}
	default:
		if in.Arg = at.value; at.writers > 0 {
			c.found = m.bounded(&o, c.found)
			in.Arg = c.found
		}
	}
	p.open = p.open.Done(o.Register)
	m.input(int(c.a), in)
}

// accessText is how package check writes an access.
func (m *model[M]) accessText(c *choice) string {
	r, name := int(c.kind), m.list[c.kind].Name
	if c.verb == scenario.Read && m.cells[r].writers > 0 {
		return scenario.Found(name, c.found)
	}
	return name
}

// told takes the access that a line of a simulation names.
func (m *model[M]) told(c *choice, text string) bool {
	name, found, _ := strings.Cut(text, " ")
	c.kind = int32(slices.IndexFunc(m.list, func(r protocol.Register) bool { return r.Name == name }))
	if found != "" {
		c.found, _ = strconv.ParseUint(found, 10, 64) // the simulator wrote it
	}
	return c.kind >= 0 && m.do(c)
}

// isAccess reports whether a verb is one of registers.
func isAccess(v scenario.Verb) bool {
	return v == scenario.Read || v == scenario.Begin || v == scenario.Write
}

// renumbered says, for each register of a list, which one it is in the list of the same system
// without process i, -1 if none: those of one owner keep their order, and processes behind i
// have moved up.
func renumbered(list, fewer []protocol.Register, i protocol.ID) []int32 {
	number := make([]int32, len(list))
	met := map[protocol.ID]int{} // how many registers of an owner
	for r, of := range list {
		owner, place := of.Owner, met[of.Owner]
		met[owner]++
		number[r] = -1
		if owner == i {
			continue
		}
		if owner > i && owner != protocol.Shared {
			owner--
		}
		for k, f := range fewer {
			if f.Owner != owner {
				continue
			}
			if place == 0 {
				number[r] = int32(k)
				break
			}
			place--
		}
	}
	return number
}

// values are what the registers hold, for invariants.
func (m *model[M]) values(list []uint64) []uint64 {
	for _, c := range m.cells {
		list = append(list, c.value)
	}
	return list
}

// share lets one process go on with an access: any of them, or in an order of priorities that changes at
// times. In a calm all take turns, and a read that overlaps a write finds the old value.
func (w *walker[M]) share() bool {
	if w.list == nil {
		return false
	}
	found := func(r int) uint64 {
		if w.calm {
			return w.cells[r].value
		}
		most := w.list[r].Most
		if most+1 == 0 {
			return w.r.Uint64()
		}
		return w.r.Uint64N(most + 1)
	}
	first := w.r.IntN(w.total)
	switch {
	case w.calm:
		first = w.looked
	case w.p.order == channels || w.p.order == receivers:
		first = int(w.salt % uint64(w.total))
	}
	for k := range w.total {
		i := (first + k) % w.total
		open := w.procs[i].open
		if len(open) == 0 || w.procs[i].process == nil || w.stands(i) {
			continue
		}
		from := w.r.IntN(len(open))
		for j := range open {
			o := &open[(from+j)%len(open)]
			v := found(o.Register)
			if w.ready(o, v) != "" {
				w.looked = i + 1
				return w.take(choice{verb: scenario.Read, a: int32(i), kind: int32(o.Register), found: v})
			}
		}
	}
	return false
}
