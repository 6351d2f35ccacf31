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

// show is what the coordinator knows.
func show(p protocol.Process[Message]) string {
	s := p.(*Process)
	switch {
	case s.id != s.coordinator:
		return ""
	case !s.busy:
		return "coordinates, nobody is inside"
	}
	return fmt.Sprintf("coordinates, #%d may be inside", s.holder) + protocol.Named(", waiting ", slices.Values(s.queue))
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
