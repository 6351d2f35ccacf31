package bully

import (
	"fmt"
	"math"

	"github.com/poundlock/poundlock/protocol"
)

func (m Message) fields(c *protocol.Codec) Message {
	protocol.Upto(c, &m.Kind, Coordinator)
	c.Epoch(&m.Epoch, math.MaxUint64)
	return m
}

func text(m Message) string { return messages[m.Kind].Name + "(" + m.Epoch.Text() + ")" }

// Show is the newest epoch, and what the process waits for.
func (p *Process) Show() string {
	text := "epoch " + p.epoch.Text()
	if !p.announced {
		text += " by hearsay"
	}
	switch p.phase {
	case asking:
		text += ", waits for OK"
	case waiting:
		text += fmt.Sprintf(", waits for COORDINATOR since #%d lives", p.trusted)
	}
	return text + protocol.Named(", suspects ", p.suspected.All())
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.Epoch(&p.epoch, protocol.ID(p.n-1))
	c.Bool(&p.announced)
	protocol.Upto(c, &p.phase, waiting)
	c.ID(&p.trusted, p.n)
	c.Set(p.suspected, p.n)
}
