package tokenring

import (
	"encoding/binary"
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

func appendNumbered(b []byte, m Numbered) []byte {
	b = append(b, m.Kind)
	if m.Kind == Lost {
		return b
	}
	return m.Number.append(b)
}

func readNumbered(b []byte) (m Numbered, rest []byte, err error) {
	r := protocol.Reader{Rest: b}
	if m.Kind = uint8(r.Max(uint64(HaveNot))); m.Kind != Lost {
		m.Number = readNumber(&r)
	}
	return m, r.Rest, r.Err
}

func (m Number) append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, m.Epoch), m.Count)
}

func readNumber(r *protocol.Reader) Number { return Number{r.Uint(), r.Uint()} }

func numberedInts(m Numbered) int {
	if m.Kind == Lost {
		return 0
	}
	return 2
}

func numberedText(m Numbered) string {
	if m.Kind == Lost {
		return numbered[Lost].Name
	}
	return fmt.Sprintf("%s(%d.%d)", numbered[m.Kind].Name, m.Number.Epoch, m.Number.Count)
}

// showKeeper is what the process knows of the token.
func showKeeper(q protocol.Process[Numbered]) string {
	p := q.(*Keeper)
	text := fmt.Sprintf("number %d.%d", p.number.Epoch, p.number.Count)
	if p.token {
		text += ", has the token"
	}
	if p.leads() {
		text += fmt.Sprintf(", leads epoch %d", p.epoch)
	}
	sep := ", waits for the answers of "
	for j := range protocol.ID(p.n) {
		if p.awaits(j) {
			text += fmt.Sprintf("%s#%d", sep, j)
			sep = ", "
		}
	}
	return text
}

// AppendState implements protocol.Process.
func (p *Keeper) AppendState(b []byte) []byte {
	b = protocol.AppendBool(append(b, byte(p.where)), p.token)
	b = binary.AppendUvarint(p.number.append(b), p.epoch)
	b = binary.AppendUvarint(b, uint64(p.leader))
	for _, set := range [...][]uint64{p.suspected, p.missing} {
		for _, w := range set {
			b = binary.AppendUvarint(b, w)
		}
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Keeper) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.where = protocol.Section(r.Max(uint64(protocol.InCrit)))
	p.token, p.number = r.Bool(), readNumber(&r)
	p.epoch, p.leader = r.Uint(), protocol.ID(r.Max(uint64(p.n-1)))
	for _, set := range [...][]uint64{p.suspected, p.missing} {
		for k := range set {
			set[k] = r.Max(1<<min(64, p.n-64*k) - 1)
		}
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Keeper) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }
