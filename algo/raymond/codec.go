package raymond

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

func (m Message) fields(c *protocol.Codec) Message {
	protocol.Upto(c, &m, Privilege)
	return m
}

// Waiting is how many neighbours want the token from here, the own user among them.
func (p *Process) Waiting() int { return len(p.queue) }

// Show is the way to the token, whether it was asked for, and who waits here.
func (p *Process) Show() string {
	text := fmt.Sprintf("holder #%d, asked %t, queue", p.holder, p.asked)
	for _, id := range p.queue {
		text += fmt.Sprintf(" #%d", id)
	}
	return text
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.ID(&p.holder, int(p.tree.n))
	c.Want(p.tree.toward(p.id, p.holder) == p.holder)
	c.Bools(&p.using, &p.asked)
	for i := range protocol.List(c, &p.queue) {
		c.ID(&p.queue[i], int(p.tree.n))
	}
	c.Want(len(p.queue) <= int(p.tree.n))
}
