package suzukikasami

import (
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func (m Message) fields(c *protocol.Codec) Message {
	if protocol.Upto(c, &m.Kind, Token); m.Kind == Request {
		c.Count(&m.Number, numbers(c.From))
		return m
	}
	for j := range protocol.List(c, &m.LN) {
		c.Count(&m.LN[j], numbers(protocol.ID(j)))
	}
	c.Words(protocol.List(c, &m.Q))
	c.Count(&m.Fence, fences)
	return m
}

// ints counts what the papers have a message carry, which is no fencing token.
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
	parts := strings.ReplaceAll(fmt.Sprint(m.LN), " ", ",")
	if !ring || len(m.Q) > 0 {
		parts += "," + protocol.Listed(m.Q)
	}
	return fmt.Sprintf("TOKEN(%s,%d)", parts, m.Fence)
}

// Show is RN, and with the token its parts.
func (p *Process) Show() string {
	text := fmt.Sprintf("RN%v", p.rn)
	if p.token {
		text += fmt.Sprintf(", token with LN%v", p.ln)
		if !p.ring {
			text += " Q" + protocol.Listed(p.queue)
		}
	}
	return text
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	protocol.Upto(c, &p.section, protocol.InCrit)
	for j := range p.rn {
		c.Count(&p.rn[j], numbers(protocol.ID(j)))
	}
	if c.Bool(&p.token); !p.token {
		if c.Reading() {
			p.queue, p.fence = p.queue[:0], 0
		}
		return
	}
	for j := range p.ln {
		c.Count(&p.ln[j], numbers(protocol.ID(j)))
	}
	for i := range protocol.List(c, &p.queue) {
		protocol.Upto(c, &p.queue[i], uint64(p.n-1))
	}
	c.Want(len(p.queue) <= p.n)
	c.Count(&p.fence, fences)
}

// numbers is the counter of the requests of process j: RN[j] of everybody, LN[j]
// and what REQUESTs of j carry.
func numbers(j protocol.ID) protocol.Counter { return protocol.Counter{User: j} }

// fences is the counter of entries, which is where the token is.
var fences = protocol.Counter{Time: 1}
