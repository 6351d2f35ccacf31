package suzukikasami

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	b = append(b, m.Kind)
	if m.Kind == Request {
		return binary.AppendUvarint(b, m.Number)
	}
	return appendWords(b, m.Token)
}

func readMessage(b []byte) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	m.Kind = uint8(r.Max(uint64(Token)))
	if m.Kind == Request {
		m.Number = r.Uint()
	} else {
		m.Token = make([]uint64, r.Len())
		for i := range m.Token {
			m.Token[i] = r.Uint()
		}
	}
	return m, r.Rest, r.Err
}

func appendWords(b []byte, words []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(words)))
	for _, w := range words {
		b = binary.AppendUvarint(b, w)
	}
	return b
}

func ints(m Message) int {
	if m.Kind == Request {
		return 1
	}
	return len(m.Token)
}

func text(m Message) string {
	if m.Kind == Request {
		return fmt.Sprintf("REQUEST(%d)", m.Number)
	}
	return "TOKEN(" + strings.Trim(strings.ReplaceAll(fmt.Sprint(m.Token), " ", ","), "[]") + ")"
}

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	b = append(b, byte(p.section))
	for _, v := range p.rn {
		b = binary.AppendUvarint(b, v)
	}
	b = protocol.AppendBool(b, p.token)
	if !p.token {
		return b
	}
	for _, v := range p.ln {
		b = binary.AppendUvarint(b, v)
	}
	return appendWords(b, p.queue)
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.section = protocol.Section(r.Max(uint64(protocol.InCrit)))
	for j := range p.rn {
		p.rn[j] = r.Uint()
	}
	p.token = r.Bool()
	p.queue = p.queue[:0]
	if p.token {
		for j := range p.ln {
			p.ln[j] = r.Uint()
		}
		for range r.Max(uint64(p.n)) {
			p.queue = append(p.queue, r.Max(uint64(p.n-1)))
		}
	}
	return r.Rest, r.Err
}
