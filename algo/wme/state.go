package wme

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.Uint(&p.epoch)
	c.ID(&p.owner, p.n)
	c.Uints(&p.number, &p.top, &p.committed, &p.executed, &p.stable)
	protocol.Upto(c, &p.phase, lost)
	c.Uints(&p.request, &p.operation, &p.life, &p.missed)
	for _, list := range [...][]uint64{p.granted, p.lives, p.last, p.done, p.wishes} {
		c.Words(list)
	}
	protocol.Text(c, &p.op)
	c.Bools(&p.late, &p.blocked, &p.proposed, &p.joined)
	visitClaims(c, &p.requests)
	visitRecords(c, &p.log)
	for _, s := range [...]protocol.Set{p.logged, p.asked, p.fetchers, p.suspected} {
		c.Set(s, p.n)
	}
	for i := range p.votes {
		protocol.Nested(c, &p.votes[i], Message.fields)
	}
	for i := range protocol.List(c, &p.early) {
		e := &p.early[i]
		c.ID(&e.from, p.n)
		protocol.Nested(c, &e.msg, Message.fields)
	}
}

// Show is where the process is in the epochs and records, and what it waits for.
func (p *Process) Show() string {
	text := fmt.Sprintf("epoch %d, token #%d, record %d, executed %d", p.epoch, p.owner, p.number, p.executed)
	switch {
	case !p.joined:
		text = "joins"
	case p.blocked:
		text += ", ends the epoch"
	}
	if len(p.requests) > 0 {
		text += ", waiting " + textOf(p.requests)
	}
	if p.phase == issuing {
		text += ", issues " + p.op
	}
	return text
}
