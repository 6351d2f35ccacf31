package ra1

import (
	"encoding/binary"
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	b = append(b, m.Kind)
	if m.Kind == Request {
		b = protocol.AppendText(binary.AppendUvarint(b, m.Time), string(m.Group))
	}
	return b
}

func readMessage(b []byte) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	if m.Kind = uint8(r.Max(uint64(Reply))); m.Kind == Request {
		m.Time, m.Group = r.Uint(), protocol.Group(r.Text())
	}
	return m, r.Rest, r.Err
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
	sep := ", owes a REPLY to "
	for j := range s.n {
		if s.deferred[j/64]&(1<<(j%64)) != 0 {
			text += fmt.Sprintf("%s#%d", sep, j)
			sep = ", "
		}
	}
	return text
}

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	b = binary.AppendUvarint(b, p.clock)
	b = append(b, byte(p.section))
	b = binary.AppendUvarint(b, p.request)
	b = protocol.AppendText(b, string(p.group))
	b = binary.AppendUvarint(b, p.missing)
	for _, w := range p.deferred {
		b = binary.AppendUvarint(b, w)
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.clock = r.Uint()
	p.section = protocol.Section(r.Max(uint64(protocol.InCrit)))
	p.request = r.Uint()
	p.group = protocol.Group(r.Text())
	p.missing = r.Max(uint64(p.n - 1))
	for i := range p.deferred {
		p.deferred[i] = r.Uint()
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }

// clocks is the counter of all timestamps. 0 means none.
var clocks = protocol.Counter{Least: 1}

func mapState(p protocol.Process[Message], f func(protocol.Counter, uint64) uint64) {
	q := p.(*Process)
	q.clock = f(clocks, q.clock)
	if q.request != 0 {
		q.request = f(clocks, q.request)
	}
}

func mapMsg(_ protocol.Channel, m *Message, f func(protocol.Counter, uint64) uint64) {
	if m.Kind == Request {
		m.Time = f(clocks, m.Time)
	}
}
