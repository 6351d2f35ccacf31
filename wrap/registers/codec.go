package registers

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(append(b, m.Kind), m.Register), m.V)
}

func (w *wrapped) read(b []byte) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	m.Kind = uint8(r.Max(uint64(Value)))
	m.Register = r.Max(uint64(len(w.names) - 1))
	m.V = r.Uint()
	return m, r.Rest, r.Err
}

// ints: a register's number, and a value.
func ints(m Message) int {
	if m.Kind == Read && m.V == 0 {
		return 1
	}
	return 2
}

func (w *wrapped) text(m Message) string {
	name := w.names[m.Register]
	switch {
	case m.Kind == Value:
		return fmt.Sprintf("VALUE(%s=%d)", name, m.V)
	case m.V == 0:
		return fmt.Sprintf("READ(%s)", name)
	}
	return fmt.Sprintf("READ(%s, until 0 or >=%d)", name, m.V)
}

// Waiting counts those whom an answer is owed.
func (p *Process) Waiting() (waiters int) {
	for _, until := range p.waiters {
		if until != 0 {
			waiters++
		}
	}
	return waiters
}

// Show is the own registers with those who wait for them, and then the algorithm's process.
func (p *Process) Show() string {
	text := ""
	for k, name := range p.names {
		text += fmt.Sprintf("%s %d, ", name, p.own[k])
		for j := range protocol.ID(p.n) {
			if until := p.waiters[p.register(k, j)]; until != 0 {
				text += fmt.Sprintf("#%d waits until it is 0 or >=%d, ", j, until)
			}
		}
	}
	return strings.TrimSuffix(text+protocol.Show(p.inner), ", ")
}

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	for _, list := range [][]uint64{p.own, p.waiters, p.open} {
		for _, v := range list {
			b = binary.AppendUvarint(b, v)
		}
	}
	return protocol.AppendState(b, p.inner)
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	for _, list := range [][]uint64{p.own, p.waiters, p.open} {
		for i := range list {
			list[i] = r.Uint()
		}
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return protocol.LoadState(r.Rest, p.inner)
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }
