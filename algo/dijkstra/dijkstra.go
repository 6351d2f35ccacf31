package dijkstra

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// Algorithm is Dijkstra's, one access to a register at a time.
var Algorithm = protocol.Silent(protocol.Algorithm[struct{}]{
	Info: protocol.Info{
		Name:      "dijkstra",
		Title:     "who finds the turn at rest takes it; shared memory",
		Source:    "Dijkstra: Solution of a Problem in Concurrent Programming Control, CACM 1965",
		Family:    protocol.SharedMemory,
		Users:     protocol.Members,
		Lacks:     []string{"starvation"},
		Registers: registers,
		Claims: []protocol.Claim{
			protocol.Between(protocol.LowLoad, protocol.Accesses, protocol.Linear(1, 4), protocol.Linear(1, 9), "N+4 if k = i, else N+9"),
			protocol.Between(protocol.LowLoad, protocol.Waiting, protocol.Linear(1, 2), protocol.Linear(1, 7), "N+2 if k = i, else N+7"),
		},
	},
	New: func(id protocol.ID, c protocol.Config) protocol.Process[struct{}] {
		return &Process{id: int(id), n: c.N}
	},
})

// The values of b and c.
const (
	no  = 0
	yes = 1
)

// registers are b[1..N], then c[1..N], then k. Everybody is at rest, and it is the turn of
// the first.
func registers(c protocol.Config) []protocol.Register {
	list := make([]protocol.Register, 2*c.N, 2*c.N+1)
	for i := range c.N {
		owner := protocol.ID(i)
		list[i] = protocol.Register{Name: fmt.Sprintf("b[%d]", i+1), Owner: owner, Initial: yes, Most: yes}
		list[c.N+i] = protocol.Register{Name: fmt.Sprintf("c[%d]", i+1), Owner: owner, Initial: yes, Most: yes}
	}
	return append(list, protocol.Register{Name: "k", Owner: protocol.Shared, Initial: 1, Most: uint64(c.N)})
}

// A label is where a process is in the program of the paper, named by the access that it
// has open.
type label uint8

const (
	rest     label = iota
	begins         // Li0: b[i] := false
	turn           // Li1: if k != i
	backs          // Li2: c[i] := true
	asks           // Li3: k, of if b[k]
	atRest         // Li3: b[k]
	takes          // Li3: k := i
	claims         // Li4: c[i] := false
	looks          // Li4: if not c[j], for j from 1 to N
	inside         // none
	leaves         // c[i] := true
	releases       // b[i] := true
)

// Process is one participant.
type Process struct {
	id, n int

	at label
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.at = begins
		out.Write(p.b(p.id), no)
	case protocol.Value:
		p.onValue(int(ev.From), ev.Arg, out)
	case protocol.Exit:
		p.at = leaves
		out.Write(p.c(p.id), yes)
	default:
		panic("dijkstra: unexpected event")
	}
}

// b, c and k are the registers b[j], c[j] and k.
func (p *Process) b(j int) int { return j }
func (p *Process) c(j int) int { return p.n + j }
func (p *Process) k() int      { return 2 * p.n }

// named is the process that k names. It names 1 to N; a read that overlaps a write may
// return 0 where registers are safe only, which then is another name of N.
func (p *Process) named(k uint64) int { return (int(k) + p.n - 1) % p.n }

// onValue goes on when the access to register r is done.
func (p *Process) onValue(r int, v uint64, out *protocol.Out[struct{}]) {
	switch p.at {
	case begins:
		p.again(out)
	case turn:
		if p.named(v) == p.id {
			p.at = claims
			out.Write(p.c(p.id), no)
			return
		}
		p.at = backs
		out.Write(p.c(p.id), yes)
	case backs:
		p.at = asks
		out.Read(p.k())
	case asks:
		p.at = atRest
		out.Read(p.b(p.named(v)))
	case atRest:
		if v == no {
			p.again(out)
			return
		}
		p.at = takes
		out.Write(p.k(), uint64(p.id)+1)
	case takes:
		p.again(out)
	case claims:
		p.at = looks
		p.look(0, out)
	case looks:
		if v == no {
			p.again(out)
			return
		}
		p.look(r-p.n+1, out)
	case leaves:
		p.at = releases
		out.Write(p.b(p.id), yes)
	case releases:
		p.at = rest
		out.Rem()
	default:
		panic("dijkstra: no access is open")
	}
}

// again is the jump to Li1.
func (p *Process) again(out *protocol.Out[struct{}]) {
	p.at = turn
	out.Read(p.k())
}

// look looks at j or the next one that is another process. After the last one it enters.
func (p *Process) look(j int, out *protocol.Out[struct{}]) {
	if j == p.id {
		j++
	}
	if j == p.n {
		p.at = inside
		out.Crit(0)
		return
	}
	out.Read(p.c(j))
}
