// Package cells is toy locks for processes that share memory, right ones and wrong ones, for two
// processes unless they say otherwise: what tests of drivers run.
package cells

import (
	"math"

	"github.com/poundlock/poundlock/protocol"
)

// A Program is the Step of a process.
type Program func(p *Process, ev protocol.Event[struct{}], out *protocol.Out[struct{}])

// A Process has a program counter and two variables.
type Process struct {
	ID   protocol.ID
	PC   byte
	R    [2]byte
	step Program
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
	switch ev.Kind {
	case protocol.Start, protocol.Try, protocol.Exit, protocol.Value:
		p.step(p, ev, out)
	default:
		panic("cells: an event that shared memory does not have")
	}
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	for _, v := range [...]*uint8{&p.PC, &p.R[0], &p.R[1]} {
		protocol.Upto(c, v, math.MaxUint8)
	}
}

// Of makes an algorithm of a program and its registers.
func Of(name string, step Program, list ...protocol.Register) protocol.Algorithm[struct{}] {
	return protocol.Silent(protocol.Algorithm[struct{}]{
		Info: protocol.Info{
			Name: name, Title: "a toy", Source: "a test", Family: protocol.SharedMemory,
			Registers: func(protocol.Config) []protocol.Register { return list },
		},
		New: func(id protocol.ID, _ protocol.Config) protocol.Process[struct{}] {
			return &Process{ID: id, step: step}
		},
	})
}

// flags are a flag of each process, and a register that both write.
var flags = []protocol.Register{
	{Name: "flag[1]", Owner: 0, Most: 1},
	{Name: "flag[2]", Owner: 1, Most: 1},
	{Name: "turn", Owner: protocol.Shared, Most: 1},
}

// Turn is the number of the register that both write.
const Turn = 2

// Peterson is the algorithm of G. L. Peterson, "Myths about the Mutual Exclusion Problem",
// Information Processing Letters 12(3), 1981: a process raises its flag, lets the other one go
// first, and reads both again and again.
var Peterson = Of("peterson", peterson(true), flags...)

// Impolite is Peterson's algorithm without its second write.
var Impolite = Of("impolite", peterson(false), flags...)

func peterson(polite bool) Program {
	const flag, turn, looks, looksAgain, leaves = 0, 1, 2, 3, 4
	return func(p *Process, ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
		other := 1 - p.ID
		switch {
		case ev.Kind == protocol.Try:
			out.Write(int(p.ID), 1)
		case ev.Kind == protocol.Exit:
			p.PC = leaves
			out.Write(int(p.ID), 0)
		case ev.Kind != protocol.Value:
		case p.PC == flag && polite:
			p.PC = turn
			out.Write(Turn, uint64(other))
		case p.PC == looks && ev.Arg == 0, p.PC == looksAgain && ev.Arg == uint64(p.ID):
			p.PC = flag
			out.Crit(0)
		case p.PC == flag, p.PC == turn, p.PC == looksAgain:
			p.PC = looks
			out.Read(int(other))
		case p.PC == looks:
			p.PC = looksAgain
			out.Read(Turn)
		case p.PC == leaves:
			p.PC = flag
			out.Rem()
		}
	}
}

// TestAndSet reads a register until it is 0, makes it 1, and takes that for one step.
var TestAndSet = Of("test-and-set", func(p *Process, ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
	switch {
	case ev.Kind == protocol.Try:
		p.PC = 1
		out.Read(0)
	case ev.Kind == protocol.Exit:
		out.Write(0, 0)
	case ev.Kind != protocol.Value:
	case p.PC == 1 && ev.Arg == 0:
		p.PC = 2
		out.Write(0, 1)
	case p.PC == 1:
		out.Read(0)
	case p.PC == 2:
		p.PC = 0
		out.Crit(0)
	default:
		out.Rem()
	}
}, protocol.Register{Name: "lock", Owner: protocol.Shared, Most: 1})

// Courteous raises its flag and awaits that the other one is down: both may do so for ever.
var Courteous = Of("courteous", func(p *Process, ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
	switch {
	case ev.Kind == protocol.Try:
		p.PC = 1
		out.Write(int(p.ID), 1)
	case ev.Kind == protocol.Exit:
		out.Write(int(p.ID), 0)
	case ev.Kind != protocol.Value:
	case p.PC == 1:
		p.PC = 2
		out.Await(int(1-p.ID), 2) // 0, since it is never 2
	case p.PC == 2:
		p.PC = 0
		out.Crit(0)
	default:
		out.Rem()
	}
}, flags[:2]...)

// Trusting takes turns: the first process enters while both flags are equal, the second one
// while they differ, and who leaves changes its own. But who tries writes its own once more, as it
// is, and a reader trusts a read that overlaps that.
var Trusting = Of("trusting", func(p *Process, ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
	own, other := int(p.ID), int(1-p.ID)
	switch {
	case ev.Kind == protocol.Try:
		p.PC = 1
		out.Write(own, uint64(p.R[0]))
	case ev.Kind == protocol.Exit:
		p.PC, p.R[0] = 3, 1-p.R[0]
		out.Write(own, uint64(p.R[0]))
	case ev.Kind != protocol.Value:
	case p.PC == 2 && (ev.Arg == uint64(p.R[0])) == (p.ID == 0):
		p.PC = 0
		out.Crit(0)
	case p.PC == 1, p.PC == 2:
		p.PC = 2
		out.Read(other)
	case p.PC == 3:
		p.PC = 0
		out.Rem()
	}
}, flags[:2]...)
