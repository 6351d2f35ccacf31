package tokenring

import (
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// fields are those of the forms whose token goes both ways, or not: then it never comes back.
func (m Message) fields(c *protocol.Codec, bothWays bool) Message {
	if protocol.Upto(c, &m.Kind, Request); m.Kind == Token {
		c.Bool(&m.Back)
		c.Want(bothWays || !m.Back)
	}
	return m
}

// ints: only where the token may go both ways does it carry anything.
func ints(m Message, bothWays bool) int {
	if bothWays && m.Kind == Token {
		return 1
	}
	return 0
}

func text(m Message) string {
	switch {
	case m.Kind == Request:
		return "REQUEST"
	case m.Back:
		return "TOKEN(back)"
	}
	return "TOKEN"
}

// Show is who has the token, and who was asked for it.
func (p *Process) Show() string {
	var parts []string
	for _, part := range []struct {
		holds bool
		text  string
	}{
		{p.back, "token from its successor"},
		{p.token && !p.back, "token"},
		{p.asked, "asked its predecessor"},
		{p.wanted, "asked by its successor"},
	} {
		if part.holds {
			parts = append(parts, part.text)
		}
	}
	return strings.Join(parts, ", ")
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	protocol.Upto(c, &p.section, protocol.InCrit)
	c.Bools(&p.token, &p.back, &p.asked, &p.wanted)
}
