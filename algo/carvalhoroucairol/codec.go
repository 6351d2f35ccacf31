package carvalhoroucairol

import (
	"encoding/binary"
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	return binary.AppendUvarint(append(b, m.Kind), m.Time)
}

func readMessage(b []byte) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	m.Kind = uint8(r.Max(uint64(Reply)))
	m.Time = r.Uint()
	return m, r.Rest, r.Err
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

// show is the clock, whose permission the process has, and whom it owes its own.
func show(p protocol.Process[Message]) string {
	s := p.(*Process)
	text := fmt.Sprintf("clock %d", s.clock)
	if s.request != 0 {
		text += fmt.Sprintf(", request %d", s.request)
	}
	list := func(sep string, of set) {
		for j := range protocol.ID(s.n) {
			if of.has(j) {
				text += fmt.Sprintf("%s#%d", sep, j)
				sep = ", "
			}
		}
	}
	list(", permitted by ", s.permits)
	list(", owes a REPLY to ", s.deferred)
	return text
}

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	b = binary.AppendUvarint(b, p.clock)
	b = binary.AppendUvarint(b, p.request)
	inside := byte(0)
	if p.inside {
		inside = 1
	}
	b = append(b, inside)
	for i := range p.permits {
		b = binary.AppendUvarint(b, p.permits[i])
		b = binary.AppendUvarint(b, p.deferred[i])
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.clock = r.Uint()
	p.request = r.Uint()
	p.inside = r.Max(1) == 1
	for i := range p.permits {
		p.permits[i] = r.Uint()
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
