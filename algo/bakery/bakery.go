package bakery

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

const source = "Lamport: A New Solution of Dijkstra's Concurrent Programming Problem, CACM 1974"

// Algorithm is the bakery as printed: one access to a register at a time, and who waits
// reads again and again.
var Algorithm = protocol.Silent(protocol.Algorithm[struct{}]{
	Info: protocol.Info{
		Name:      "bakery",
		Title:     "the smallest ticket enters; shared memory",
		Source:    source,
		Family:    protocol.SharedMemory,
		Users:     protocol.Members,
		Registers: registers,
		Claims: []protocol.Claim{
			protocol.Exactly(protocol.LowLoad, protocol.Accesses, protocol.Linear(3, 1), "3N+1"),
			protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Linear(3, 0), "3N"),
		},
	},
	New: func(id protocol.ID, c protocol.Config) protocol.Process[struct{}] {
		return &Process{id: int(id), n: c.N}
	},
	Model: model,
})

// Awaiting is the bakery for package registers: all reads of the doorway are open at once,
// and a wait is one access, which ends when its condition holds. Its Info is what holds
// when each process answers for its own registers, and a read costs two messages.
var Awaiting = protocol.Silent(protocol.Algorithm[struct{}]{
	Info: protocol.Info{
		Name:      "bakery-messages",
		Title:     "the smallest ticket enters; registers read by messages",
		Source:    source,
		Family:    protocol.SharedMemory,
		Users:     protocol.Members,
		Registers: registers,
		Options:   options,
		Claims: []protocol.Claim{
			reads(protocol.LowLoad, protocol.ToEnter),
			reads(protocol.LowLoad, protocol.Messages),
			protocol.Exactly(protocol.LowLoad, protocol.Waiting, hops, "6; 2+4(N-1) without parallel"),
			reads(protocol.HighLoad, protocol.Messages),
		},
	},
	New: func(id protocol.ID, c protocol.Config) protocol.Process[struct{}] {
		return &Process{id: int(id), n: c.N, awaits: true, parallel: isParallel(c)}
	},
	Model: model,
})

var options = []protocol.Option{{
	Name:    "parallel",
	Default: func(protocol.Config) int64 { return 1 },
	Range:   func(protocol.Config) (least, most int64) { return 0, 1 },
	Sound:   func(protocol.Config) (least, most int64) { return 0, 1 },
	Doc:     "1: wait for all others at once; 0: for one after the other, as printed (default 1)",
}}

func isParallel(c protocol.Config) bool {
	return protocol.Info{Options: options}.Option(c, "parallel") != 0
}

// reads claims two messages for each read of another's register: one of each in the
// doorway and two in the bakery. Own registers are read without, since a process sends
// nothing to itself: the lecture counts them too.
func reads(l protocol.Load, m protocol.Measure) protocol.Claim {
	return protocol.Exactly(l, m, protocol.Linear(6, -6), "6(N-1)").PublishedAs("6N")
}

// hops is how long an entry takes without contention: a read takes two.
func hops(c protocol.Config) float64 {
	if isParallel(c) {
		return 6
	}
	return 2 + 4*float64(c.N-1)
}

// registers are choosing[1..N] and then num[1..N].
func registers(c protocol.Config) []protocol.Register {
	list := make([]protocol.Register, 2*c.N)
	for i := range c.N {
		owner := protocol.ID(i)
		list[i] = protocol.Register{Name: fmt.Sprintf("choosing[%d]", i+1), Owner: owner, Most: 1}
		// More than the tickets of N processes that come once.
		list[c.N+i] = protocol.Register{Name: fmt.Sprintf("num[%d]", i+1), Owner: owner, Most: uint64(c.N) + 1}
	}
	return list
}

// A phase is where a process is in its program, named by the access that it has open.
type phase uint8

const (
	rest     phase = iota
	starts         // choosing[i] = true
	doorway        // max(num[x])
	takes          // num[i] = 1 + max
	chosen         // choosing[i] = false
	waits          // for each j: while choosing[j], then while num[j] comes first
	inside         // none
	releases       // num[i] = 0
)

// Process is one participant.
type Process struct {
	id, n    int
	awaits   bool // the doorway reads all at once, and a wait is one access
	parallel bool // and all waits are open at once

	at   phase
	max  uint64 // of the numbers read in the doorway, 0 outside
	num  uint64 // the own ticket, 0 without
	left int    // how many others are still to be read, or to be waited for
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.at = starts
		out.Write(p.choosing(p.id), 1)
	case protocol.Value:
		p.onValue(int(ev.From), ev.Arg, out)
	case protocol.Exit:
		p.at, p.num = releases, 0
		out.Write(p.ticket(p.id), 0)
	default:
		panic("bakery: unexpected event")
	}
}

// choosing and ticket are the registers choosing[j] and num[j].
func (p *Process) choosing(j int) int { return j }
func (p *Process) ticket(j int) int   { return p.n + j }

// onValue goes on when the access to register r is done.
func (p *Process) onValue(r int, v uint64, out *protocol.Out[struct{}]) {
	switch p.at {
	case starts:
		p.forAll(doorway, out)
	case doorway:
		p.max = max(p.max, v)
		p.done(r-p.n, out)
	case takes:
		p.at = chosen
		out.Write(p.choosing(p.id), 0)
	case chosen:
		p.forAll(waits, out)
	case waits:
		p.waited(r, v, out)
	case releases:
		p.at = rest
		out.Rem()
	default:
		panic("bakery: no access is open")
	}
}

// forAll begins what is done about each other process.
func (p *Process) forAll(at phase, out *protocol.Out[struct{}]) {
	p.at, p.left = at, p.n-1
	if p.left == 0 {
		p.doneAll(out)
		return
	}
	for j := range p.n {
		if j == p.id {
			continue
		}
		p.begin(j, out)
		if !p.together() {
			return
		}
	}
}

// together says that all others are asked at once.
func (p *Process) together() bool { return p.parallel || p.awaits && p.at == doorway }

func (p *Process) begin(j int, out *protocol.Out[struct{}]) {
	if p.at == doorway {
		out.Read(p.ticket(j))
	} else {
		p.wait(p.choosing(j), out)
	}
}

// wait waits for what register r has to be: 0 or large enough.
func (p *Process) wait(r int, out *protocol.Out[struct{}]) {
	if p.awaits {
		out.Await(r, p.enough(r))
	} else {
		out.Read(r)
	}
}

// enough is the least value other than 0 that register r may have. Of choosing[j] it is
// one that it never has; of num[j] the least ticket with which j comes after this process.
func (p *Process) enough(r int) uint64 {
	const never = 2
	switch j := r - p.n; {
	case j < 0:
		return never
	case j < p.id:
		return p.num + 1
	default:
		return p.num
	}
}

// waited goes on to num[j] after choosing[j], and then to the next process.
func (p *Process) waited(r int, v uint64, out *protocol.Out[struct{}]) {
	switch {
	case v != 0 && v < p.enough(r):
		p.wait(r, out)
	case r < p.n:
		p.wait(p.ticket(r), out)
	default:
		p.done(r-p.n, out)
	}
}

// done goes on when nothing is left to be done about j.
func (p *Process) done(j int, out *protocol.Out[struct{}]) {
	if p.left--; p.left == 0 {
		p.doneAll(out)
		return
	}
	if p.together() {
		return
	}
	if j++; j == p.id {
		j++
	}
	p.begin(j, out)
}

// doneAll takes the ticket after the doorway, and enters after the waits.
func (p *Process) doneAll(out *protocol.Out[struct{}]) {
	if p.at == doorway {
		p.at, p.num, p.max = takes, p.max+1, 0
		out.Write(p.ticket(p.id), p.num)
		return
	}
	p.at = inside
	out.Crit(0)
}
