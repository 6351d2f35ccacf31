package statemachine

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

func (m Vote) fields(c *protocol.Codec) Vote {
	protocol.Upto(c, &m.Kind, Over)
	c.Uint(&m.Place)
	anyStamp(c, &m.Ballot)
	anyStamp(c, &m.Accepted)
	c.AnyID(&m.Who)
	return m
}

// anyStamp visits a ballot of a client, or none.
func anyStamp(c *protocol.Codec, s *protocol.Stamp) {
	if c.Uint(&s.Time); s.Time > 0 {
		c.AnyID(&s.ID)
	} else if c.Reading() {
		s.ID = 0
	}
}

// State implements protocol.Process.
func (s *Acceptor) State(c *protocol.Codec) {
	c.Uint(&s.place)
	anyStamp(c, &s.promised)
	anyStamp(c, &s.accepted)
	c.AnyID(&s.who)
	for i := range protocol.List(c, &s.asked) {
		c.AnyID(&s.asked[i])
		c.Want(i == 0 || s.asked[i-1] < s.asked[i])
	}
	c.Want(s.place > 0 && (s.accepted.Time > 0 || s.who == 0))
}

// State implements protocol.Process.
func (p *Proposer) State(c *protocol.Codec) {
	c.Uint(&p.place)
	protocol.Upto(c, &p.phase, phases-1)
	for _, s := range []*protocol.Stamp{&p.ballot, &p.larger, &p.latest, &p.counted} {
		anyStamp(c, s)
	}
	c.AnyID(&p.who)
	c.Set(p.promised, p.n)
	c.Set(p.accepted, p.n)
	c.Want(p.place > 0)
}

// permute gives servers other ids.
func permute(q protocol.Process[Vote], f func(protocol.ID) protocol.ID) {
	if p, ok := q.(*Proposer); ok {
		for _, s := range []*protocol.Set{&p.promised, &p.accepted} {
			other := protocol.NewSet(p.n)
			for j := range s.All() {
				other.Add(f(j))
			}
			*s = other
		}
	}
}

func voteText(m Vote) string {
	text := fmt.Sprintf("%s(%d", votes[m.Kind].Name, m.Place)
	for _, s := range []protocol.Stamp{m.Ballot, m.Accepted} {
		if s.Time > 0 {
			text += "," + s.String()
		}
	}
	if m.Who > 0 {
		text += fmt.Sprintf(",#%d", m.Who)
	}
	return text + ")"
}

// Show is the place, and what the server has promised and accepted there.
func (s *Acceptor) Show() string {
	text := fmt.Sprintf("place %d", s.place)
	if s.promised.Time > 0 {
		text += fmt.Sprintf(", promised %v", s.promised)
	}
	if s.accepted.Time > 0 {
		text += fmt.Sprintf(", accepted #%d in %v", s.who, s.accepted)
	}
	return text
}

// Show is the place, and what the client waits for.
func (p *Proposer) Show() string {
	text := fmt.Sprintf("place %d", p.place)
	switch p.phase {
	case Preparing:
		text += protocol.Named(fmt.Sprintf(", prepares %v, promised by ", p.ballot), p.promised.All())
	case Proposing:
		text += fmt.Sprintf(", has proposed in %v", p.ballot)
	case Pausing:
		text += fmt.Sprintf(", pauses for %v", p.larger)
	}
	return text + protocol.Named(", accepted by ", p.accepted.All())
}
