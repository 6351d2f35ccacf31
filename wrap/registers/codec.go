package registers

import (
	"fmt"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

func (w *wrapped) fields(m Message, c *protocol.Codec) Message {
	protocol.Upto(c, &m.Kind, Value)
	protocol.Upto(c, &m.Register, uint64(len(w.names)-1))
	c.Uint(&m.V)
	return m
}

// ints: a register's number, and a value.
func ints(m Message) int {
	if m.Kind == Read && m.V == 0 {
		return 1
	}
	return 2
}

func (w *wrapped) text(m Message) string {
	name := w.names[m.Register]
	switch {
	case m.Kind == Value:
		return fmt.Sprintf("VALUE(%s=%d)", name, m.V)
	case m.V == 0:
		return fmt.Sprintf("READ(%s)", name)
	}
	return fmt.Sprintf("READ(%s, until 0 or >=%d)", name, m.V)
}

// Waiting counts those whom an answer is owed.
func (p *Process) Waiting() (waiters int) {
	for _, until := range p.waiters {
		if until != 0 {
			waiters++
		}
	}
	return waiters
}

// Show is the own registers with those who wait for them, and then the algorithm's process.
func (p *Process) Show() string {
	text := ""
	for k, name := range p.names {
		text += fmt.Sprintf("%s %d, ", name, p.own[k])
		for j := range protocol.ID(p.n) {
			if until := p.waiters[p.register(k, j)]; until != 0 {
				text += fmt.Sprintf("#%d waits until it is 0 or >=%d, ", j, until)
			}
		}
	}
	return strings.TrimSuffix(text+protocol.Show(p.inner), ", ")
}

// State implements protocol.Process.
func (p *Process) State(c *protocol.Codec) {
	for _, list := range [...][]uint64{p.own, p.waiters, p.open} {
		c.Words(list)
	}
	p.inner.State(c)
}
