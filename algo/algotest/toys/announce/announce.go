// Package announce is an election without messages, for tests of drivers: every process
// names the highest id that it does not suspect. Its variants make one mistake each.
package announce

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// A Mistake is what a variant does wrong.
type Mistake uint8

// The mistakes.
const (
	None    Mistake = iota
	Reuses          // it counts epochs by itself, so that two processes give one to different leaders
	Ignores         // it does not hear that a suspicion ends
	Loops           // a suspicion sends a letter around for ever
)

// A Letter is the only message. Only Loops sends it.
type Letter struct{}

// Algorithm is the election with a mistake, under a detector.
func Algorithm(m Mistake, d protocol.Detector) protocol.Algorithm[Letter] {
	return protocol.Algorithm[Letter]{
		Info: protocol.Info{
			Name: "announce", Title: "everybody names the highest id that it does not suspect",
			Source: "a toy of tests", Family: protocol.Election, Users: protocol.Nobody, Detector: d,
			Tolerates: protocol.Crash | protocol.Recovery,
			Messages:  []protocol.Message{{Name: "LETTER"}},
		},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Letter] {
			return &process{id: id, n: uint64(c.N), mistake: m}
		},
		Fields: func(m Letter, c *protocol.Codec) Letter {
			one := true
			c.Bool(&one)
			return m
		},
		KindOf: func(Letter) int { return 0 },
		Ints:   func(Letter) int { return 0 },
		Text:   func(Letter) string { return "LETTER" },
	}
}

type process struct {
	id            protocol.ID
	n             uint64
	mistake       Mistake
	suspected     uint64 // a set
	leader, epoch uint64 // the last ones that it named, plus 1
	sent          bool   // a letter
}

// Step implements protocol.Process. The leader of epoch e is e mod n, so that epochs of
// different leaders differ.
func (p *process) Step(ev protocol.Event[Letter], out *protocol.Out[Letter]) {
	before := p.suspected
	switch ev.Kind {
	case protocol.Start, protocol.Receive:
	case protocol.Suspect:
		p.suspected |= 1 << ev.From
	case protocol.Restore:
		if p.mistake != Ignores {
			p.suspected &^= 1 << ev.From
		}
	default:
		panic(fmt.Sprintf("announce: an election has no event %d", ev.Kind))
	}
	p.announce(out)
	if p.mistake == Loops && (ev.Kind == protocol.Receive || p.suspected > before && !p.sent) {
		p.sent = true
		if to := p.next(); to != p.id {
			out.Send(to, Letter{})
		}
	}
}

func (p *process) announce(out *protocol.Out[Letter]) {
	top := uint64(p.id)
	for j := range p.n {
		if p.suspected>>j&1 == 0 {
			top = max(top, j)
		}
	}
	if p.leader == top+1 {
		return
	}
	next := p.epoch/p.n*p.n + top
	if next < p.epoch {
		next += p.n
	}
	if p.mistake == Reuses {
		next = p.epoch
	}
	p.leader, p.epoch = top+1, next+1
	out.Leader(protocol.ID(top), next)
}

// next is the process behind it that it does not suspect, or itself.
func (p *process) next() protocol.ID {
	to := (p.id + 1) % protocol.ID(p.n)
	for to != p.id && p.suspected>>to&1 == 1 {
		to = (to + 1) % protocol.ID(p.n)
	}
	return to
}

// State implements protocol.Process.
func (p *process) State(c *protocol.Codec) {
	c.Uints(&p.suspected, &p.leader, &p.epoch)
	c.Bool(&p.sent)
}
