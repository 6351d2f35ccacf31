package carvalhoroucairol

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
	if m.Kind == Reply {
		return 0
	}
	return 1
}

func text(m Message) string {
	if m.Kind == Reply {
		return messages[Reply].Name
	}
	return fmt.Sprintf("%s(%d)", messages[m.Kind].Name, m.Time)
}

// Show is the clock, whose permission the process has, and whom it owes its own.
func (p *Process) Show() string {
	text := fmt.Sprintf("clock %d", p.clock)
	if p.request != 0 {
		text += fmt.Sprintf(", request %d", p.request)
	}
	return text + protocol.Named(", permitted by ", p.permits.All()) + protocol.Named(", owes a REPLY to ", p.deferred.All())
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.Clock(&p.clock)
	c.Time(&p.request)
	c.Bool(&p.inside)
	c.Set(p.permits, p.n)
	c.Set(p.deferred, p.n)
}
