package bully

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/poundlock/poundlock/protocol"
)

func appendMessage(b []byte, m Message) []byte {
	return m.Epoch.Append(append(b, m.Kind))
}

func readMessage(b []byte) (m Message, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	m.Kind = uint8(r.Max(uint64(Coordinator)))
	m.Epoch = r.Epoch(math.MaxUint64)
	return m, r.Rest, r.Err
}

func text(m Message) string { return messages[m.Kind].Name + "(" + m.Epoch.Text() + ")" }

// show is the newest epoch, and what the process waits for.
func show(q protocol.Process[Message]) string {
	p := q.(*Process)
	text := "epoch " + p.epoch.Text()
	if !p.announced {
		text += " by hearsay"
	}
	switch p.phase {
	case asking:
		text += ", waits for OK"
	case waiting:
		text += fmt.Sprintf(", waits for COORDINATOR since #%d lives", p.trusted)
	}
	sep := ", suspects "
	for j := range protocol.ID(p.n) {
		if p.suspects(j) {
			text += fmt.Sprintf("%s#%d", sep, j)
			sep = ", "
		}
	}
	return text
}

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	b = protocol.AppendBool(p.epoch.Append(b), p.announced)
	b = binary.AppendUvarint(append(b, byte(p.phase)), uint64(p.trusted))
	for _, w := range p.suspected {
		b = binary.AppendUvarint(b, w)
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.epoch = r.Epoch(protocol.ID(p.n - 1))
	p.announced = r.Bool()
	p.phase = phase(r.Max(uint64(waiting)))
	p.trusted = protocol.ID(r.Max(uint64(p.n - 1)))
	for k := range p.suspected {
		p.suspected[k] = r.Max(1<<min(64, p.n-64*k) - 1)
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }
