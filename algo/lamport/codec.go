package lamport

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
	m.Kind = uint8(r.Max(uint64(Release)))
	m.Time = r.Uint()
	return m, r.Rest, r.Err
}

func text(m Message) string {
	return fmt.Sprintf("%s(%d)", messages[m.Kind].Name, m.Time)
}

// show is the clock, the queue, and from whom something has yet to arrive.
func show(p protocol.Process[Message]) string {
	s := p.(*Process)
	text := fmt.Sprintf("clock %d", s.clock)
	sep := ", queue "
	for _, r := range s.queue {
		text += fmt.Sprintf("%s%d:#%d", sep, r.time, r.id)
		sep = " "
	}
	sep = ", nothing later of "
	for j := range s.n {
		if s.silent[j/64]&(1<<(j%64)) != 0 {
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
	b = binary.AppendUvarint(b, p.own.time)
	b = binary.AppendUvarint(b, uint64(len(p.queue)))
	for _, r := range p.queue {
		b = binary.AppendUvarint(b, r.time)
		b = binary.AppendUvarint(b, uint64(r.id))
	}
	for _, w := range p.silent {
		b = binary.AppendUvarint(b, w)
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.clock = r.Uint()
	p.section = protocol.Section(r.Max(uint64(protocol.InCrit)))
	p.own = request{time: r.Uint()}
	if p.section != protocol.InRem {
		p.own.id = p.id
	}
	p.queue = p.queue[:0]
	for left := r.Uint(); left > 0 && r.Err == nil; left-- {
		p.queue = append(p.queue, request{r.Uint(), protocol.ID(r.Max(uint64(p.n - 1)))})
	}
	for i := range p.silent {
		p.silent[i] = r.Uint()
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
	if q.own.time != 0 {
		q.own.time = f(clocks, q.own.time)
	}
	for i := range q.queue {
		q.queue[i].time = f(clocks, q.queue[i].time)
	}
}

func mapMsg(_ protocol.Channel, m *Message, f func(protocol.Counter, uint64) uint64) {
	m.Time = f(clocks, m.Time)
}
