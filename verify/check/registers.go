package check

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// # Registers
//
// Processes that share memory send no messages. In place of these a state has one word
// for each register, in their order: the number of its content. What a process has
// open is part of its local state. The rules are those of world.Cell.
//
// Who waits in an Await does nothing. Somebody who reads again and again is not stuck, though
// nothing changes: if that goes on for ever it is a livelock. What an Await may find while
// the register is written need not happen.
//
// Each access that must happen is a class of its own for fairness, whatever the value that
// it finds. An Await whose condition holds now and then may be unlucky each time, as one that
// polls may.

// A content is what one register holds.
type content struct {
	register int
	world.Cell
}

// Bounds of registers: their numbers fit an action, and what a read may find can be listed.
const (
	maxRegisters = math.MaxUint8
	maxFinds     = 1 << 12 // by one read that overlaps a write
)

// withRegisters is why nothing is reduced.
const withRegisters = "with registers each order of steps counts"

// noProcess is at both ends of the word of a register, and of a proposal.
const noProcess = math.MaxUint8

// checkRegisters refuses what means nothing with registers.
func (c *Config) checkRegisters(i protocol.Info) error {
	if i.Registers == nil {
		return nil
	}
	list := i.Registers(c.Config)
	if len(list) < 1 || len(list) > maxRegisters {
		return fmt.Errorf("%d registers: want 1 to %d", len(list), maxRegisters)
	}
	for _, r := range list {
		if c.Registers == protocol.Safe && r.Most >= maxFinds {
			return fmt.Errorf("safe registers: a read of %s may find any of %d values, want at most %d", r.Name, r.Most+1, maxFinds)
		}
	}
	for _, b := range c.Budgets() {
		switch b.Verb {
		case scenario.Amnesia, scenario.Suspect, scenario.Lose, scenario.Duplicate:
			if *b.Most != 0 {
				return fmt.Errorf("%s=%d: %w", b.Name, *b.Most, protocol.ErrRegisters)
			}
		}
	}
	return nil
}

// remember puts the registers into the state being built, with their first values.
func (x *worker) remember() {
	for k, r := range x.rules.Memory {
		x.next[x.cells+k] = x.content(content{k, world.Cell{Value: r.Initial}})
		for v := uint64(0); x.rules.Safe && v <= r.Most; v++ {
			x.content(found(k, v))
		}
	}
}

// found is the content that stands for a value found by a read that overlaps a write.
func found(register int, value uint64) content {
	return content{register, world.Cell{Writers: 1, Value: value}}
}

// content returns the number of c.
func (x *worker) content(c content) uint32 {
	x.key = binary.AppendUvarint(append(x.key[:0], byte(c.register)), uint64(c.Writers))
	x.key = binary.AppendUvarint(x.key, c.Value)
	n := x.word(registerWord, x.key)
	if int(n) == len(x.shared.contents) {
		x.shared.contents = append(x.shared.contents, c)
	}
	return n
}

// accesses appends the actions of processes on registers.
func (x *worker) accesses(list []action) []action {
	for i := range x.rules.Total {
		if x.st[1+i] == 0 {
			continue
		}
		for _, o := range x.locals[x.st[1+i]].Open {
			at := x.cells + o.Register
			a := action{a: uint8(i), b: uint8(o.Register), at: uint32(at), arg: x.st[at]}
			c := &x.shared.contents[a.arg]
			switch c.Next(o, x.rules.Safe) {
			case scenario.Begin:
				a.verb, a.arg = begin, uint32(o.Register)
			case scenario.Write:
				a.verb, a.arg = write, uint32(o.Register)
			case scenario.Read:
				if c.Writers > 0 {
					list = x.finds(list, a, o)
					continue
				}
				a.verb = read
			default:
				continue
			}
			list = append(list, a)
		}
	}
	return list
}

// finds appends what a read may find that overlaps a write.
func (x *worker) finds(list []action, a action, o protocol.Access) []action {
	if a.verb = read; o.Do == protocol.Await {
		a.verb = awaitOverlap
	}
	for v := range x.rules.Memory[o.Register].Most + 1 {
		if o.Ends(v) {
			a.arg = x.content(found(o.Register, v))
			list = append(list, a)
		}
	}
	return list
}

// written returns the number of what a register holds when a write has ended.
func (x *worker) written(a action) uint32 {
	c := x.shared.contents[x.st[a.at]]
	c.Write(*x.locals[x.st[1+a.a]].Open.Of(int(a.b)))
	return x.content(c)
}

// cellsOf tells what the registers hold in a state.
func (x *worker) cellsOf(st []uint32) (cells []scenario.Cell) {
	for k, r := range x.rules.Memory {
		if st != nil {
			c := x.shared.contents[st[x.cells+k]]
			cells = append(cells, scenario.Cell{Register: r.Name, Value: c.Value, Writers: c.Writers})
		}
	}
	return cells
}
