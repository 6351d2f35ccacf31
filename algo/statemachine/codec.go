package statemachine

import (
	"fmt"
	"math"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func (m Message) fields(c *protocol.Codec) Message {
	protocol.Upto(c, &m.Kind, Decided)
	c.Uints(&m.Ballot, &m.Place)
	m.Command.fields(c)
	for i := range protocol.List(c, &m.Log) {
		m.Log[i].fields(c)
	}
	return m
}

func (d *Command) fields(c *protocol.Codec) {
	protocol.Upto(c, &d.Do, commands-1)
	c.AnyID(&d.Who)
	c.Uints(&d.ID, &d.Section)
	protocol.Text(c, &d.Op)
}

func (e *Entry) fields(c *protocol.Codec) {
	c.Uint(&e.Ballot)
	c.Bool(&e.Decided)
	e.Command.fields(c)
}

func (p *Process) visitSection(c *protocol.Codec, s *section) {
	c.ID(&s.who, p.n)
	c.Uint(&s.id)
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.Uints(&p.command, &p.section, &p.ballot)
	protocol.Upto(c, &p.executed, math.MaxInt)
	c.Bools(&p.leaving, &p.ejected, &p.leading)
	for id := range p.n {
		c.Uints(&p.last[id], &p.ended[id])
	}
	c.Set(p.promised, p.n)
	c.Set(p.suspected, p.n)
	p.visitSection(c, &p.asked)
	for i := range protocol.List(c, &p.queue) {
		p.visitSection(c, &p.queue[i])
	}
	for i := range protocol.List(c, &p.pending) {
		p.pending[i].fields(c)
	}
	for i := range protocol.List(c, &p.log) {
		s := &p.log[i]
		s.Entry.fields(c)
		for k := range protocol.List(c, &s.votes) {
			v := &s.votes[k]
			if v.by == nil { // it is read
				v.by = protocol.NewSet(p.n)
			}
			c.Uint(&v.ballot)
			c.Set(v.by, p.n)
		}
	}
	c.Want(p.ballot > 0 && p.executed <= len(p.log))
}

// ints: an operation counts one.
func ints(m Message) int { return 7 + 7*len(m.Log) }

func text(m Message) string {
	name := messages[m.Kind].Name
	switch m.Kind {
	case Request:
		return fmt.Sprintf("%s(%s)", name, m.Command)
	case Prepare:
		return fmt.Sprintf("%s(%d,%d)", name, m.Ballot, m.Place)
	case Promise:
		words := make([]string, len(m.Log))
		for i, e := range m.Log {
			words[i] = e.String()
		}
		return fmt.Sprintf("%s(%d,%d,%s)", name, m.Ballot, m.Place, strings.Join(words, " "))
	case Decided:
		return fmt.Sprintf("%s(%d,%s)", name, m.Place, m.Command)
	}
	return fmt.Sprintf("%s(%d,%d,%s)", name, m.Ballot, m.Place, m.Command)
}

var verbs = []string{Nothing: "nothing", Enter: "enter", Invoke: "invoke", Exit: "exit", Eject: "eject"}

// String implements fmt.Stringer.
func (c Command) String() string {
	return fmt.Sprintf("%s #%d,%d,%d,%s", verbs[c.Do], c.Who, c.ID, c.Section, c.Op)
}

// String implements fmt.Stringer.
func (e Entry) String() string {
	if e.Decided {
		return fmt.Sprintf("[decided,%d,%s]", e.Ballot, e.Command)
	}
	return fmt.Sprintf("[%d,%s]", e.Ballot, e.Command)
}

// Waiting is how many commands follow the one of the process that is inside.
func (p *Process) Waiting() int { return max(0, len(p.queue)-1) }

// Show is who coordinates, and who is inside and waits.
func (p *Process) Show() string {
	text := fmt.Sprintf("ballot %d of #%d, executed %d of %d", p.ballot, owner(p.ballot, p.n), p.executed, len(p.log))
	if p.leading {
		text += ", coordinates"
	}
	sep := ", inside "
	for _, s := range p.queue {
		text += fmt.Sprintf("%s#%d", sep, s.who)
		sep = ", then "
	}
	return text
}
