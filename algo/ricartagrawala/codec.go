package ricartagrawala

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

func (m Message) fields(c *protocol.Codec) Message {
	protocol.Upto(c, &m.Kind, Reply)
	c.Time(&m.Time)
	return m
}

func ints(m Message) int {
	if m.Time == 0 {
		return 0
	}
	return 1
}

func text(m Message) string {
	if m.Time == 0 {
		return messages[m.Kind].Name
	}
	return fmt.Sprintf("%s(%d)", messages[m.Kind].Name, m.Time)
}

// show is the clock, and what the process waits for and owes.
func show(p protocol.Process[Message]) string {
	s := p.(*Process)
	text := fmt.Sprintf("clock %d", s.clock)
	if s.request != 0 {
		text += fmt.Sprintf(", request %d", s.request)
	}
	if s.missing != 0 {
		text += fmt.Sprintf(", REPLYs missing %d", s.missing)
	}
	return text + protocol.Named(", owes a REPLY to ", s.deferred.All())
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.Clock(&p.clock)
	protocol.Upto(c, &p.section, protocol.InCrit)
	c.Time(&p.request)
	protocol.Upto(c, &p.missing, uint64(p.n-1))
	c.Set(p.deferred, p.n)
}
