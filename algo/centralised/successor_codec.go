package centralised

import (
	"encoding/binary"
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

func appendTold(b []byte, m Told) []byte { return binary.AppendUvarint(append(b, m.Kind), m.Epoch) }

func readTold(b []byte) (m Told, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	m.Kind = uint8(r.Max(uint64(Inside)))
	m.Epoch = r.Uint()
	return m, r.Rest, r.Err
}

func toldText(m Told) string { return fmt.Sprintf("%s(%d)", toldMessages[m.Kind].Name, m.Epoch) }

// showHeir is who coordinates, and what the coordinator knows.
func showHeir(q protocol.Process[Told]) string {
	p := q.(*Heir)
	if p.epoch == 0 {
		return "no coordinator yet"
	}
	if p.leader != p.id {
		return fmt.Sprintf("follows #%d in epoch %d", p.leader, p.epoch)
	}
	text := fmt.Sprintf("coordinates epoch %d", p.epoch)
	if p.taken {
		text += fmt.Sprintf(", #%d may be inside", p.holder)
	}
	sep := ", waiting "
	for _, j := range p.waits {
		text += fmt.Sprintf("%s#%d", sep, j)
		sep = ", "
	}
	sep = ", has not heard from "
	for j := range protocol.ID(p.n) {
		if !has(p.heard, j) && !p.suspects(j) {
			text += fmt.Sprintf("%s#%d", sep, j)
			sep = ", "
		}
	}
	return text
}

// AppendState implements protocol.Process.
func (p *Heir) AppendState(b []byte) []byte {
	b = binary.AppendUvarint(append(b, byte(p.section)), p.epoch)
	b = binary.AppendUvarint(b, uint64(p.leader))
	b = appendSet(b, p.suspected)
	if p.leader != p.id {
		return b
	}
	b = appendSet(b, p.heard)
	b = binary.AppendUvarint(appendBool(b, p.taken), uint64(p.holder))
	b = binary.AppendUvarint(b, uint64(len(p.waits)))
	for _, j := range p.waits {
		b = binary.AppendUvarint(b, j)
	}
	return b
}

func appendSet(b []byte, set []uint64) []byte {
	for _, w := range set {
		b = binary.AppendUvarint(b, w)
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Heir) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	last := uint64(p.n - 1)
	p.section = protocol.Section(r.Max(uint64(protocol.InCrit)))
	p.epoch, p.leader = r.Uint(), protocol.ID(r.Max(last))
	p.readSet(&r, p.suspected)
	clear(p.heard)
	p.taken, p.holder, p.waits = false, 0, p.waits[:0]
	if p.leader != p.id {
		return r.Rest, r.Err
	}
	p.readSet(&r, p.heard)
	p.taken, p.holder = r.Bool(), protocol.ID(r.Max(last))
	for range r.Max(uint64(p.n)) {
		p.waits = append(p.waits, r.Max(last))
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Heir) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }

func (p *Heir) readSet(r *protocol.Reader, set []uint64) {
	for k := range set {
		set[k] = r.Max(1<<min(64, p.n-64*k) - 1)
	}
}
