package bakery

import (
	"encoding/binary"
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

var phases = []string{
	rest: "at rest", starts: "starts to choose", doorway: "in the doorway", takes: "takes its ticket",
	chosen: "has chosen", waits: "in the bakery", inside: "inside", releases: "releases its ticket",
}

// show is the phase and what it rests on.
func show(q protocol.Process[struct{}]) string {
	p := q.(*Process)
	text := phases[p.at]
	if p.max != 0 {
		text += fmt.Sprintf(", saw %d", p.max)
	}
	if p.num != 0 {
		text += fmt.Sprintf(", num %d", p.num)
	}
	if p.left != 0 {
		text += fmt.Sprintf(", %d left", p.left)
	}
	return text
}

// AppendState implements protocol.Process.
func (p *Process) AppendState(b []byte) []byte {
	b = binary.AppendUvarint(append(b, byte(p.at)), p.max)
	return binary.AppendUvarint(binary.AppendUvarint(b, p.num), uint64(p.left))
}

// LoadState implements protocol.Process.
func (p *Process) LoadState(b []byte) ([]byte, error) {
	r := protocol.Reader{Rest: b}
	p.at = phase(r.Max(uint64(releases)))
	p.max, p.num, p.left = r.Uint(), r.Uint(), int(r.Max(uint64(p.n-1)))
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }
