package lamport

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

func (m Message) fields(c *protocol.Codec) Message {
	protocol.Upto(c, &m.Kind, Release)
	c.Clock(&m.Time)
	return m
}

func text(m Message) string {
	return fmt.Sprintf("%s(%d)", messages[m.Kind].Name, m.Time)
}

// Show is the clock, the queue, and from whom something has yet to arrive.
func (p *Process) Show() string {
	text := fmt.Sprintf("clock %d", p.clock)
	sep := ", queue "
	for _, r := range p.queue {
		text += fmt.Sprintf("%s%d:#%d", sep, r.Time, r.ID)
		sep = " "
	}
	return text + protocol.Named(", nothing later of ", p.silent.All())
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.Clock(&p.clock)
	protocol.Upto(c, &p.section, protocol.InCrit)
	if c.Time(&p.own.Time); c.Reading() {
		p.own.ID = 0
		if p.section != protocol.InRem {
			p.own.ID = p.id
		}
	}
	for i := range protocol.List(c, &p.queue) {
		c.Clock(&p.queue[i].Time)
		c.ID(&p.queue[i].ID, p.n)
	}
	c.Set(p.silent, p.n)
}
