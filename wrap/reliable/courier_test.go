package reliable

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// The couriers are algorithms that do nothing but notice what a channel does wrong, and
// panic. A process that tries sends letters to all members and enters when each was answered, so
// that one that never arrives is a deadlock. They exclude nobody.

// A letter or its answer.
type letter struct {
	Answer bool
	Number uint64 // from 1, in each life and lease anew
	Life   uint64 // of the member that it is for, or from
	Lease  uint64 // how many leases of the client there have lapsed
}

// A post is one end of a correspondence. In from, life 1 says that the lease has lapsed.
type post struct{ next, answered, life, lease uint64 }

type courier struct {
	id      protocol.ID
	n       int
	fifo    bool
	letters int // that a try sends to each member
	trying  bool
	life    uint64
	to      []post // by member: letters sent, and answers received
	from    []post // by process: letters received
}

// couriers send so many letters to each member in one try.
func couriers(letters int, i protocol.Info) protocol.Algorithm[letter] {
	i.Name, i.Title, i.Source = "courier", "letters", "none"
	i.Messages = []protocol.Message{{Name: "LETTER"}, {Name: "ANSWER"}}
	return protocol.Algorithm[letter]{
		Info: i,
		New: func(id protocol.ID, c protocol.Config) protocol.Process[letter] {
			return &courier{id: id, n: c.N, letters: letters, fifo: i.FIFO, to: make([]post, c.N), from: make([]post, 8)}
		},
		Fields: func(m letter, c *protocol.Codec) letter {
			c.Bool(&m.Answer)
			c.Uints(&m.Number, &m.Life, &m.Lease)
			return m
		},
		KindOf: func(m letter) int {
			if m.Answer {
				return 1
			}
			return 0
		},
		Ints: func(letter) int { return 3 },
		Text: func(m letter) string { return fmt.Sprintf("LETTER(%t,%d,%d,%d)", m.Answer, m.Number, m.Life, m.Lease) },
	}
}

// State implements protocol.Process.
func (p *courier) State(c *protocol.Codec) {
	c.Bool(&p.trying)
	c.Uint(&p.life)
	for _, list := range [][]post{p.to, p.from} {
		for k := range list {
			q := &list[k]
			c.Uints(&q.next, &q.answered, &q.life, &q.lease)
		}
	}
}

func (p *courier) Step(ev protocol.Event[letter], out *protocol.Out[letter]) {
	switch m := ev.Msg; ev.Kind {
	case protocol.Start:
		p.life = ev.Arg
	case protocol.Try:
		p.trying = true
		for j := range p.to {
			p.write(j, out)
		}
		p.enter(out)
	case protocol.Exit:
		out.Rem()
	case protocol.Suspect:
		if p.id < protocol.ID(p.n) {
			if q := &p.from[ev.From]; q.life == 0 { // it is repeated
				*q = post{lease: q.lease + 1, life: 1}
			}
			break
		}
		p.to[ev.From] = post{life: p.to[ev.From].life, lease: p.to[ev.From].lease + 1}
	case protocol.Restore:
		q := &p.to[ev.From]
		*q = post{life: ev.Arg, lease: q.lease}
		if p.trying {
			p.write(int(ev.From), out)
		}
	case protocol.Receive:
		if m.Answer {
			p.answered(ev.From, m, out)
			return
		}
		q := &p.from[ev.From]
		switch {
		case m.Life != p.life:
			panic(fmt.Sprintf("courier: life %d takes a letter to life %d", p.life, m.Life))
		case m.Lease < q.lease:
			panic("courier: a letter of a lease that has lapsed")
		case m.Lease > q.lease:
			*q = post{lease: m.Lease}
		}
		q.take(m.Number, p.fifo)
		out.Send(ev.From, letter{true, m.Number, p.life, m.Lease})
	default:
		panic("courier: unexpected event")
	}
}

// write sends letters to member j, but for those that it has answered.
func (p *courier) write(j int, out *protocol.Out[letter]) {
	for range p.letters {
		if q := &p.to[j]; protocol.ID(j) != p.id {
			q.next++
			out.Send(protocol.ID(j), letter{false, q.next, q.life, q.lease})
		}
	}
}

func (p *courier) answered(from protocol.ID, m letter, out *protocol.Out[letter]) {
	q := &p.to[from]
	switch {
	case m.Life != q.life:
		panic(fmt.Sprintf("courier: an answer of life %d, which is %d now", m.Life, q.life))
	case m.Lease != q.lease:
		panic("courier: an answer of a lease that has lapsed")
	}
	q.take(m.Number, p.fifo)
	p.enter(out)
}

// take notes a number in answered: the last one where order is kept, else a set.
func (q *post) take(number uint64, fifo bool) {
	bit := uint64(1) << number
	switch {
	case number == 0 || number > 60:
		panic("courier: no such number")
	case q.answered&bit != 0:
		panic("courier: it came twice")
	case fifo && bit-2 != q.answered:
		panic("courier: out of order")
	}
	q.answered |= bit
}

// enter enters when every letter is answered.
func (p *courier) enter(out *protocol.Out[letter]) {
	for j, q := range p.to {
		if protocol.ID(j) != p.id && q.answered != 2<<q.next-2 {
			return
		}
	}
	if p.trying {
		p.trying = false
		out.Crit(0)
	}
}
