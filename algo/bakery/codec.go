package bakery

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

var phases = []string{
	rest: "at rest", starts: "starts to choose", doorway: "in the doorway", takes: "takes its ticket",
	chosen: "has chosen", waits: "in the bakery", inside: "inside", releases: "releases its ticket",
}

// Show is the phase and what it rests on.
func (p *Process) Show() string {
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

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	protocol.Upto(c, &p.at, releases)
	c.Uints(&p.max, &p.num)
	protocol.Upto(c, &p.left, p.n-1)
}

// Show is that, and what the process has found before.
func (h *historian) Show() string {
	return fmt.Sprintf("%s, doorways that came before %d", h.Process.Show(), h.known)
}

// State implements protocol.Process.
func (h *historian) State(c *protocol.Codec) {
	protocol.Upto(c, &h.asks, h.n)
	c.Bools(&h.writes, &h.said)
	for i := range h.known {
		protocol.Upto(c, &h.known[i], uint64(h.tries))
	}
	h.Process.State(c)
}
