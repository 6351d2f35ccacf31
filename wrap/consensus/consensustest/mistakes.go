package consensustest

import (
	"math/rand/v2"

	"github.com/poundlock/poundlock/protocol"
)

type (
	process = protocol.Process[uint64]
	event   = protocol.Event[uint64]
	effects = protocol.Out[uint64]
)

// A mistaken process gets events as step wants: as if the service had a mistake.
type mistaken struct {
	process
	id    protocol.ID
	step  func(p *mistaken, ev event, out *effects)
	own   uint64 // proposed last
	first uint64 // decided first
}

func with(step func(*mistaken, event, *effects)) func(protocol.Algorithm[uint64]) protocol.Algorithm[uint64] {
	return func(a protocol.Algorithm[uint64]) protocol.Algorithm[uint64] {
		made := a.New
		a.New = func(id protocol.ID, c protocol.Config) process {
			return &mistaken{process: made(id, c), id: id, step: step}
		}
		return a
	}
}

// Unwrap returns it.
func (p *mistaken) Unwrap() any { return p.process }

// Step implements protocol.Process.
func (p *mistaken) Step(ev event, out *effects) {
	p.step(p, ev, out)
	for _, e := range out.Effects {
		if e.Do == protocol.Propose {
			p.own = e.Msg
		}
	}
}

// mistakes are those of a service, whatever serves.
var mistakes = []struct {
	name, want string
	step       func(p *mistaken, ev event, out *effects)
}{
	{"everybody hears its own proposal", Agreement, func(p *mistaken, ev event, out *effects) {
		if ev.Kind == protocol.Decide && p.own > 0 {
			ev.Msg = p.own
		}
		p.process.Step(ev, out)
	}},
	{"decisions of no instance in particular", Validity, func(p *mistaken, ev event, out *effects) {
		if ev.Kind == protocol.Decide {
			if p.first == 0 {
				p.first = ev.Msg
			}
			ev.Msg = p.first
		}
		p.process.Step(ev, out)
	}},
	{"decisions twice", Order, func(p *mistaken, ev event, out *effects) {
		p.process.Step(ev, out)
		if ev.Kind == protocol.Decide {
			p.process.Step(ev, out)
		}
	}},
	{"decisions left out", Order, func(p *mistaken, ev event, out *effects) {
		if ev.Kind != protocol.Decide || ev.Arg != 1 || p.id != 1 {
			p.process.Step(ev, out)
		}
	}},
	{"no last decision", Termination, func(p *mistaken, ev event, out *effects) {
		if ev.Kind != protocol.Decide || ev.Arg != instances-1 {
			p.process.Step(ev, out)
		}
	}},
	{"draws lots", Determinism, func(p *mistaken, ev event, out *effects) {
		p.process.Step(ev, out)
		if ev.Kind == protocol.Decide && rand.IntN(2) == 0 { // a message that nobody waits for
			out.Send((p.id+1)%2, welcome)
		}
	}},
}
