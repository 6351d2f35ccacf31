package ringelection

import (
	"math"

	"github.com/poundlock/poundlock/protocol"
)

func (m Message) fields(c *protocol.Codec) Message {
	if protocol.Upto(c, &m.Kind, Recovered); m.Kind == Recovered {
		return m
	}
	if c.Epoch(&m.Epoch, math.MaxUint64); m.Kind == Election {
		c.Words(protocol.List(c, &m.IDs))
		c.Want(len(m.IDs) > 0)
	}
	return m
}

func ints(m Message) int {
	switch m.Kind {
	case Recovered:
		return 0
	case Coordinator:
		return 2
	}
	return 2 + len(m.IDs)
}

func text(m Message) string {
	switch name := messages[m.Kind].Name; m.Kind {
	case Recovered:
		return name
	case Coordinator:
		return name + "(" + m.Epoch.Text() + ")"
	default:
		return name + "(" + m.Epoch.Text() + "," + protocol.Listed(m.IDs) + ")"
	}
}

// Show is the newest epoch, and the election that the process takes part in.
func (p *Process) Show() string {
	text := "epoch " + p.epoch.Text()
	if len(p.list) > 0 {
		text += ", takes part in " + protocol.Listed(p.list)
	}
	return text + protocol.Named(", suspects ", p.suspected.All())
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	c.Epoch(&p.epoch, protocol.ID(p.n-1))
	for i := range protocol.List(c, &p.list) {
		protocol.Upto(c, &p.list[i], uint64(p.n-1))
	}
	c.Want(len(p.list) <= p.n)
	c.Set(p.suspected, p.n)
}
