package world

import (
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// # Registers
//
// One step ends one access, and the process gets its Value in the same step. An Await is
// possible where its condition holds.
//
// Safe registers (protocol.Safe) have writes of two steps, begin and write. While a write of it
// is under way, a read of the register may find anything from 0 to Register.Most. So may one of
// the reads of an Await; but it need not find what the process waits for, however often it
// looks. With several writers at the same time the value of the write that ends last stays.
// Where a process crashes while it writes, the register is never settled again.

// A Cell is what one register holds.
type Cell struct {
	Writers int // safe writes that have begun and not ended
	Value   uint64
}

// Next is what may happen to an access: Begin or Write; Read, which finds the value of
// the register, or while it is written any that ends the access; or "": it waits.
func (c Cell) Next(a protocol.Access, safe bool) scenario.Verb {
	switch {
	case a.Do != protocol.Write && (c.Writers > 0 || a.Ends(c.Value)):
		return scenario.Read
	case a.Do != protocol.Write:
		return ""
	case safe && !a.Begun:
		return scenario.Begin
	}
	return scenario.Write
}

// Begin begins the write of a process to a register. The process does not notice.
func (c *Cell) Begin(e *End, register int) {
	e.Open = append(protocol.OpenAccesses(nil), e.Open...)
	e.Open.Of(register).Begun = true
	c.Writers++
}

// Write ends the write of a process to a register.
func (c *Cell) Write(a protocol.Access) {
	if c.Value = a.Arg; a.Begun {
		c.Writers--
	}
}

// Value ends the access of a process to a register, which finds a value; a write finds 0.
func (e *End) Value(register int, found uint64) protocol.Input {
	e.Open = append(protocol.OpenAccesses(nil), e.Open...).Done(register)
	return protocol.NewValue(register, found)
}

// open begins an access of process i.
func (r *Rules) open(e *End, i int, a protocol.Act) history.Fault {
	open, err := append(protocol.OpenAccesses(nil), e.Open...).Open(r.Memory, protocol.ID(i), a)
	if err != nil {
		return r.wrong("%s", r.Names.Text(err.Error()))
	}
	e.Open = open
	return history.Fault{}
}
