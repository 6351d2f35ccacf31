package suzukikasami

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	b = append(b, m.Kind)
	if m.Kind == Request {
		return binary.AppendUvarint(b, m.Number)
	}
	return appendWords(appendWords(b, m.LN), m.Q)
}

func readMessage(b []byte) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	m.Kind = uint8(r.Max(uint64(Token)))
	if m.Kind == Request {
		m.Number = r.Uint()
	} else {
		m.LN, m.Q = readWords(&r), readWords(&r)
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

func readWords(r *protocol.Reader) []uint64 {
	words := make([]uint64, r.Len())
	for i := range words {
		words[i] = r.Uint()
	}
	return words
}

func ints(m Message) int {
	if m.Kind == Request {
		return 1
	}
	return len(m.LN) + len(m.Q)
}

// text: a token of the ring has no queue.
func text(m Message, ring bool) string {
	if m.Kind == Request {
		return fmt.Sprintf("REQUEST(%d)", m.Number)
	}
	ln := strings.ReplaceAll(fmt.Sprint(m.LN), " ", ",")
	if ring && len(m.Q) == 0 {
		return "TOKEN(" + ln + ")"
	}
	return "TOKEN(" + ln + "," + queue(m.Q) + ")"
}

// queue is Q with processes written for drivers.
func queue(q []uint64) string {
	ids := make([]string, len(q))
	for i, id := range q {
		ids[i] = fmt.Sprintf("#%d", id)
	}
	return "[" + strings.Join(ids, ",") + "]"
}

// show is RN, and with the token its parts.
func show(p protocol.Process[Message]) string {
	s := p.(*Process)
	text := fmt.Sprintf("RN%v", s.rn)
	if s.token {
		text += fmt.Sprintf(", token with LN%v", s.ln)
		if !s.ring {
			text += " Q" + queue(s.queue)
		}
	}
	return text
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

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }

// numbers is the counter of the requests of process j: RN[j] of everybody, LN[j]
// and what REQUESTs of j carry.
func numbers(j int) protocol.Counter { return protocol.Counter{User: protocol.ID(j)} }

func mapState(p protocol.Process[Message], f func(protocol.Counter, uint64) uint64) {
	q := p.(*Process)
	for j := range q.rn {
		q.rn[j] = f(numbers(j), q.rn[j])
		if q.token {
			q.ln[j] = f(numbers(j), q.ln[j])
		}
	}
}

func mapMsg(ch protocol.Channel, m *Message, f func(protocol.Counter, uint64) uint64) {
	if m.Kind == Request {
		m.Number = f(numbers(int(ch.From)), m.Number)
		return
	}
	m.LN = slices.Clone(m.LN) // a token under way is frozen
	for j, v := range m.LN {
		m.LN[j] = f(numbers(j), v)
	}
}
