package lamport

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

func (m MulticastMessage) fields(c *protocol.Codec) MulticastMessage {
	protocol.Upto(c, &m.Kind, Received)
	c.Clock(&m.Time)
	if m.Kind == Tell {
		m.Command.fields(c)
	} else if c.Reading() {
		m.Command = Command{}
	}
	return m
}

func (d *Command) fields(c *protocol.Codec) {
	protocol.Upto(c, &d.Do, commands-1)
	if d.Do == Invoke {
		protocol.Text(c, &d.Op)
	} else if c.Reading() {
		d.Op = ""
	}
}

// State implements protocol.Process.
func (p *Replica) State(c *protocol.Codec) {
	c.Clock(&p.clock)
	for i := range protocol.List(c, &p.queue) {
		q := &p.queue[i]
		c.Clock(&q.Time)
		c.ID(&q.Stamp.ID, p.n)
		q.Command.fields(c)
	}
	for j := range p.heard {
		c.Time(&p.heard[j])
	}
	c.Uint(&p.executed)
	for i := range protocol.List(c, &p.sections) {
		c.ID(&p.sections[i], p.n)
	}
}

// multicastInts: an operation counts one.
func multicastInts(m MulticastMessage) int {
	switch {
	case m.Kind == Received:
		return 1
	case m.Command.Do == Invoke:
		return 3
	}
	return 2
}

func multicastText(m MulticastMessage) string {
	name := multicastMessages[m.Kind].Name
	if m.Kind == Received {
		return fmt.Sprintf("%s(%d)", name, m.Time)
	}
	return fmt.Sprintf("%s(%d,%s)", name, m.Time, m.Command)
}

var verbs = []string{Enter: "enter", Invoke: "invoke ", Exit: "exit"}

// String implements fmt.Stringer.
func (d Command) String() string { return verbs[d.Do] + d.Op }

// Show is the clock, what is not delivered, and who is inside and waits.
func (p *Replica) Show() string {
	text := fmt.Sprintf("clock %d", p.clock)
	sep := ", not delivered "
	for _, c := range p.queue {
		text += fmt.Sprintf("%s%d:#%d:%s", sep, c.Time, c.Stamp.ID, c.Command)
		sep = " "
	}
	return text + protocol.Named(", inside and then ", slices.Values(p.sections))
}
