package centralised

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

func (m Message) fields(c *protocol.Codec) Message {
	protocol.Upto(c, &m.Kind, Denied)
	return m
}

// Waiting is how many wait at the coordinator.
func (p *Process) Waiting() int { return len(p.queue) }

// Show is what the coordinator knows.
func (p *Process) Show() string {
	switch {
	case p.id != p.coordinator:
		return ""
	case !p.busy:
		return "coordinates, nobody is inside"
	}
	return fmt.Sprintf("coordinates, #%d may be inside", p.holder) + protocol.Named(", waiting ", slices.Values(p.queue))
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.Bool(&p.trying)
	if c.Reading() {
		p.busy, p.holder, p.queue = false, 0, p.queue[:0]
	}
	if p.id != p.coordinator {
		return
	}
	if c.Bool(&p.busy); p.busy {
		c.ID(&p.holder, p.n)
		visit(c, &p.queue, p.n)
	}
}

// visit visits a queue of some of n processes.
func visit(c *protocol.Codec, queue *[]uint64, n int) {
	for i := range protocol.List(c, queue) {
		protocol.Upto(c, &(*queue)[i], uint64(n-1))
	}
	c.Want(len(*queue) <= n)
}
