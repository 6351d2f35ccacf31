package ricartagrawala

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

func (f form) fields(m Message, c *protocol.Codec) Message {
	protocol.Upto(c, &m.Kind, Reply)
	c.Time(&m.Time)
	if f.groups && m.Kind == Request {
		protocol.Text(c, &m.Group)
	}
	return m
}

// ints: a group counts one.
func (f form) ints(m Message) int {
	switch {
	case m.Time == 0:
		return 0
	case f.groups:
		return 2
	}
	return 1
}

func (f form) text(m Message) string {
	switch {
	case m.Time == 0:
		return messages[m.Kind].Name
	case f.groups:
		return fmt.Sprintf("%s(%d,%s)", messages[m.Kind].Name, m.Time, m.Group)
	}
	return fmt.Sprintf("%s(%d)", messages[m.Kind].Name, m.Time)
}

// Show is the clock, and what the process waits for and owes.
func (p *Process) Show() string {
	text := fmt.Sprintf("clock %d", p.clock)
	if p.request != 0 {
		text += fmt.Sprintf(", request %d", p.request)
		if p.groups {
			text += fmt.Sprintf(" of %s", p.group)
		}
	}
	if p.missing != 0 {
		text += fmt.Sprintf(", REPLYs missing %d", p.missing)
	}
	return text + protocol.Named(", owes a REPLY to ", p.deferred.All())
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.Clock(&p.clock)
	protocol.Upto(c, &p.section, protocol.InCrit)
	c.Time(&p.request)
	if p.groups {
		protocol.Text(c, &p.group)
	}
	protocol.Upto(c, &p.missing, uint64(p.n-1))
	c.Set(p.deferred, p.n)
}
