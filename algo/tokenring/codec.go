package tokenring

import (
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	b = append(b, m.Kind)
	if m.Kind == Token {
		b = protocol.AppendBool(b, m.Back)
	}
	return b
}

// reader reads the messages of one form: only where the token may rest there are REQUESTs, and only
// where it may go both ways it comes back.
func reader(resting, bothWays bool) func(b []byte) (m Message, rest []byte, err error) {
	most, back := uint64(Token), uint64(0)
	if resting {
		most = uint64(Request)
	}
	if bothWays {
		back = 1
	}
	return func(b []byte) (m Message, rest []byte, err error) {
		r := protocol.Reader{Rest: b}
		if m.Kind = uint8(r.Max(most)); m.Kind == Token {
			m.Back = r.Max(back) == 1
		}
		return m, r.Rest, r.Err
	}
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

// show is who has the token, and who was asked for it.
func show(q protocol.Process[Message]) string {
	p := q.(*Process)
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

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	b = append(b, byte(p.section))
	for _, v := range []bool{p.token, p.back, p.asked, p.wanted} {
		b = protocol.AppendBool(b, v)
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.section = protocol.Section(r.Max(uint64(protocol.InCrit)))
	p.token, p.back, p.asked, p.wanted = r.Bool(), r.Bool(), r.Bool(), r.Bool()
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }
