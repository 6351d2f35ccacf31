package sim

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/workload"
	"github.com/poundlock/poundlock/verify/world"
)

// memory is the registers that processes share, and what they do there. Its random numbers
// are its own.
type memory struct {
	cells  []cell
	random workload.Stream
}

// A cell is one register.
type cell struct {
	world.Cell
	waiters []uint32 // processes whose Await found that it does not hold yet
}

// reset is the memory of a run that has not begun, in that of an earlier one.
func (m *memory) reset(list []protocol.Register) {
	m.cells = slices.Grow(m.cells[:0], len(list))[:len(list)]
	for r := range m.cells {
		m.cells[r] = cell{world.Cell{Value: list[r].Initial}, m.cells[r].waiters[:0]}
	}
}

// access begins an access. It takes as long as a message does.
func (s *engine) access(id uint32, a protocol.Act) {
	p := &s.procs[id]
	open, err := p.open.Open(s.Memory, protocol.ID(id), a)
	if err != nil {
		s.found(history.WellFormed, s.Names.Text(err.Error()))
		return
	}
	p.open = open
	s.Accesses++
	if a.Do == protocol.Write && s.Safe {
		p.open.Of(int(a.To)).Begun = true
		s.memory.cells[a.To].Writers++
		s.logVerb(scenario.Begin, id, 0, s.Memory[a.To].Name)
	}
	s.leave(id, access, id, uint32(a.To), 0)
}

// accessed ends an access, or lets it wait.
func (s *engine) accessed(it item) {
	p := &s.procs[it.to]
	if !p.up || it.key>>kindBits <= p.born {
		return // of a former life
	}
	if p.pausedUntil > s.now {
		s.again(it, p.pausedUntil)
		return
	}
	r, o, c := int(it.slot), *p.open.Of(int(it.slot)), &s.memory.cells[it.slot]
	if o.Do == protocol.Write {
		s.written(it.to, it.slot, o)
		return
	}
	v, text := c.Value, s.Memory[r].Name
	if c.Writers > 0 {
		v = s.memory.random.Uint64()
		if most := s.Memory[r].Most; most+1 > 0 {
			v %= most + 1
		}
		if s.log != nil {
			text = scenario.Found(text, v)
		}
	}
	if !o.Ends(v) {
		c.waiters = append(c.waiters, it.to)
		return
	}
	s.logVerb(scenario.Read, it.to, 0, text)
	p.open = p.open.Done(r)
	s.input(it.to, protocol.NewValue(r, v))
}

// written ends a write. Whoever waits for what it made true looks again.
func (s *engine) written(id, register uint32, o protocol.Access) {
	c := &s.memory.cells[register]
	c.Write(o)
	c.waiters = slices.DeleteFunc(c.waiters, func(j uint32) bool {
		ends := s.procs[j].open.Of(int(register)).Ends(c.Value)
		if ends {
			s.leave(j, access, j, register, 0)
		}
		return ends
	})
	s.logVerb(scenario.Write, id, 0, s.Memory[register].Name)
	p := &s.procs[id]
	p.open = p.open.Done(int(register))
	s.input(id, protocol.NewValue(int(register), 0))
}

// leaveMemory ends what a process did with registers when it stops. A write that has begun never ends.
func (s *engine) leaveMemory(id uint32) {
	p := &s.procs[id]
	for _, o := range p.open {
		c := &s.memory.cells[o.Register]
		c.waiters = slices.DeleteFunc(c.waiters, func(j uint32) bool { return j == id })
	}
	p.open, p.born = p.open[:0], s.seq
}
