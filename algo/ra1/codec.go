package ra1

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

func (m Message) fields(c *protocol.Codec) Message {
	if protocol.Upto(c, &m.Kind, Reply); m.Kind == Request {
		c.Clock(&m.Time)
		protocol.Text(c, &m.Group)
	}
	return m
}

// ints: a group counts one.
func ints(m Message) int {
	if m.Kind == Reply {
		return 0
	}
	return 2
}

func text(m Message) string {
	if m.Kind == Reply {
		return "REPLY"
	}
	return fmt.Sprintf("REQUEST(%d,%s)", m.Time, m.Group)
}

// show is the clock, and what the process wants, waits for and owes.
func show(p protocol.Process[Message]) string {
	s := p.(*Process)
	text := fmt.Sprintf("clock %d", s.clock)
	if s.section == protocol.InTry {
		text += fmt.Sprintf(", request %d of %s, REPLYs missing %d", s.request, s.group, s.missing)
	}
	return text + protocol.Named(", owes a REPLY to ", s.deferred.All())
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.Clock(&p.clock)
	protocol.Upto(c, &p.section, protocol.InCrit)
	c.Time(&p.request)
	protocol.Text(c, &p.group)
	protocol.Upto(c, &p.missing, uint64(p.n-1))
	c.Set(p.deferred, p.n)
}
