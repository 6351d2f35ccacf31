package tokenring

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

func (m Numbered) fields(c *protocol.Codec) Numbered {
	if protocol.Upto(c, &m.Kind, HaveNot); m.Kind != Lost {
		m.Number.fields(c)
	}
	return m
}

func (m *Number) fields(c *protocol.Codec) { c.Uints(&m.Epoch, &m.Count) }

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

// Show is what the process knows of the token.
func (p *Keeper) Show() string {
	text := fmt.Sprintf("number %d.%d", p.number.Epoch, p.number.Count)
	if p.token {
		text += ", has the token"
	}
	if p.leads() {
		text += fmt.Sprintf(", leads epoch %d", p.epoch)
	}
	return text + protocol.Named(", waits for the answers of ", p.missing.All())
}

// State implements protocol.Process.
func (p *Keeper) State(c *protocol.Codec) {
	protocol.Upto(c, &p.where, protocol.InCrit)
	c.Bool(&p.token)
	p.number.fields(c)
	c.Uint(&p.epoch)
	c.ID(&p.leader, p.n)
	c.Set(p.suspected, p.n)
	c.Set(p.missing, p.n)
}
