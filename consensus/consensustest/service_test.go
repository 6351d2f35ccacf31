package consensustest

import (
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

type (
	algorithm = protocol.Algorithm[uint64]
	process   = protocol.Process[uint64]
	event     = protocol.Event[uint64]
	effects   = protocol.Out[uint64]
)

// The service of algotest.
func TestService(t *testing.T) {
	Run(t, Service[uint64]{
		With: func(a algorithm) algorithm { return a },
		Bare: func(p process) process { return p },
		Broken: []Broken[uint64]{
			{Name: "everybody hears its own proposal", Want: Agreement, With: with(func(p *broken, ev event, out *effects) {
				if ev.Kind == protocol.Decide && p.own > 0 {
					ev.Msg = p.own
				}
				p.process.Step(ev, out)
			})},
			{Name: "decisions of no instance in particular", Want: Validity, With: with(func(p *broken, ev event, out *effects) {
				if ev.Kind == protocol.Decide {
					if p.first == 0 {
						p.first = ev.Msg
					}
					ev.Msg = p.first
				}
				p.process.Step(ev, out)
			})},
			{Name: "decisions twice", Want: Order, With: with(func(p *broken, ev event, out *effects) {
				p.process.Step(ev, out)
				if ev.Kind == protocol.Decide {
					p.process.Step(ev, out)
				}
			})},
			{Name: "decisions left out", Want: Order, With: with(func(p *broken, ev event, out *effects) {
				if ev.Kind != protocol.Decide || ev.Arg != 1 || p.id != 1 {
					p.process.Step(ev, out)
				}
			})},
			{Name: "no last decision", Want: Termination, With: with(func(p *broken, ev event, out *effects) {
				if ev.Kind != protocol.Decide || ev.Arg != instances-1 {
					p.process.Step(ev, out)
				}
			})},
		},
	})
}

// A broken process gets events as step wants.
type broken struct {
	process
	id    protocol.ID
	step  func(p *broken, ev event, out *effects)
	own   uint64 // proposed last
	first uint64 // decided first
}

func with(step func(*broken, event, *effects)) func(algorithm) algorithm {
	return func(a algorithm) algorithm {
		made := a.New
		a.New = func(id protocol.ID, c protocol.Config) process {
			return &broken{process: made(id, c), id: id, step: step}
		}
		return a
	}
}

func (p *broken) Bare() process { return p.process }

func (p *broken) Step(ev event, out *effects) {
	p.step(p, ev, out)
	for _, e := range out.Effects {
		if e.Do == protocol.Propose {
			p.own = e.Msg
		}
	}
}
