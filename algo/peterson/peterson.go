package peterson

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// Algorithm is Peterson's, one access to a register at a time.
var Algorithm = protocol.Silent(protocol.Algorithm[struct{}]{
	Info: protocol.Info{
		Name:      "peterson",
		Title:     "two processes, each gives way to the other; shared memory",
		Source:    "Peterson: Myths About the Mutual Exclusion Problem, Information Processing Letters 1981",
		Family:    protocol.SharedMemory,
		Users:     protocol.Members,
		Largest:   2,
		Registers: registers,
		Claims: []protocol.Claim{
			protocol.Exactly(protocol.LowLoad, protocol.Accesses, protocol.Fixed(4), "4"),
			protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(3), "3"),
		},
	},
	New: func(id protocol.ID, _ protocol.Config) protocol.Process[struct{}] {
		return &Process{id: int(id)}
	},
})

// The values of a flag.
const (
	no  = 0
	yes = 1
)

// turn is the register that both write, behind the flags of the two.
const turn = 2

// registers are flag[1], flag[2] and turn, which names a process: 1 or 2.
func registers(protocol.Config) []protocol.Register {
	list := make([]protocol.Register, turn, turn+1)
	for i := range list {
		list[i] = protocol.Register{Name: fmt.Sprintf("flag[%d]", i+1), Owner: protocol.ID(i), Most: yes}
	}
	return append(list, protocol.Register{Name: "turn", Owner: protocol.Shared, Initial: 1, Most: 2})
}

// A label is where a process is in its program, named by the access that it has open.
type label uint8

const (
	rest     label = iota
	wants          // flag[i] := true
	gives          // turn := i
	looks          // wait until not flag[j]
	looksOn        // or turn = j
	inside         // none
	releases       // flag[i] := false
)

// Process is one of the two.
type Process struct {
	id int // 0 or 1; the paper counts from 1

	at label
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.at = wants
		out.Write(p.id, yes)
	case protocol.Value:
		p.onValue(ev.Arg, out)
	case protocol.Exit:
		p.at = releases
		out.Write(p.id, no)
	default:
		panic("peterson: unexpected event")
	}
}

// other is the place of the other process, and of its flag.
func (p *Process) other() int { return 1 - p.id }

// name is how turn names a process.
func name(id int) uint64 { return uint64(id) + 1 }

// onValue goes on when the access is done, which read v.
func (p *Process) onValue(v uint64, out *protocol.Out[struct{}]) {
	switch p.at {
	case wants:
		p.at = gives
		out.Write(turn, name(p.id))
	case gives:
		p.look(out)
	case looks:
		if v == no {
			p.enter(out)
			return
		}
		p.at = looksOn
		out.Read(turn)
	case looksOn:
		if v == name(p.other()) {
			p.enter(out)
			return
		}
		p.look(out)
	case releases:
		p.at = rest
		out.Rem()
	default:
		panic("peterson: no access is open")
	}
}

// look begins the wait, or goes round once more.
func (p *Process) look(out *protocol.Out[struct{}]) {
	p.at = looks
	out.Read(p.other())
}

func (p *Process) enter(out *protocol.Out[struct{}]) {
	p.at = inside
	out.Crit(0)
}
