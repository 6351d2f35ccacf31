package centralised

import (
	"encoding/binary"
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte { return append(b, m.Kind) }

// readMessage reads a message of so many kinds.
func readMessage(b []byte, kinds int) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	m.Kind = uint8(r.Max(uint64(kinds - 1)))
	return m, r.Rest, r.Err
}

// show is what the coordinator knows.
func show(p protocol.Process[Message]) string {
	s := p.(*Process)
	switch {
	case s.id != s.coordinator:
		return ""
	case !s.busy:
		return "coordinates, nobody is inside"
	}
	text := fmt.Sprintf("coordinates, #%d may be inside", s.holder)
	sep := ", waiting "
	for _, j := range s.queue {
		text += fmt.Sprintf("%s#%d", sep, j)
		sep = ", "
	}
	return text
}

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	b = appendBool(b, p.trying)
	if p.id != p.coordinator {
		return b
	}
	if b = appendBool(b, p.busy); !p.busy {
		return b
	}
	b = binary.AppendUvarint(b, uint64(p.holder))
	b = binary.AppendUvarint(b, uint64(len(p.queue)))
	for _, j := range p.queue {
		b = binary.AppendUvarint(b, j)
	}
	return b
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.trying = r.Max(1) == 1
	p.busy, p.holder, p.queue = false, 0, p.queue[:0]
	if p.id != p.coordinator {
		return r.Rest, r.Err
	}
	if p.busy = r.Max(1) == 1; p.busy {
		p.holder = protocol.ID(r.Max(uint64(p.n - 1)))
		for range r.Max(uint64(p.n)) {
			p.queue = append(p.queue, r.Max(uint64(p.n-1)))
		}
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }
