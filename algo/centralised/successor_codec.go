package centralised

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

func (m Told) fields(c *protocol.Codec) Told {
	protocol.Upto(c, &m.Kind, Inside)
	c.Uint(&m.Epoch)
	return m
}

func toldText(m Told) string { return fmt.Sprintf("%s(%d)", toldMessages[m.Kind].Name, m.Epoch) }

// Waiting is how many wait at the coordinator.
func (p *Heir) Waiting() int { return len(p.waits) }

// Show is who coordinates, and what the coordinator knows.
func (p *Heir) Show() string {
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
	text += protocol.Named(", waiting ", slices.Values(p.waits))
	sep := ", has not heard from "
	for j := range protocol.ID(p.n) {
		if !p.heard.Has(j) && !p.suspects(j) {
			text += fmt.Sprintf("%s#%d", sep, j)
			sep = ", "
		}
	}
	return text
}

// State implements protocol.Process.
func (p *Heir) State(c *protocol.Codec) {
	protocol.Upto(c, &p.section, protocol.InCrit)
	c.Uint(&p.epoch)
	c.ID(&p.leader, p.n)
	c.Set(p.suspected, p.n)
	if c.Reading() {
		p.heard.Clear()
		p.taken, p.holder, p.waits = false, 0, p.waits[:0]
	}
	if p.leader == p.id {
		c.Set(p.heard, p.n)
		c.Bool(&p.taken)
		c.ID(&p.holder, p.n)
		visit(c, &p.waits, p.n)
	}
}
