// Package sessions watches how a driver keeps the leases of members at each other: it
// panics at what protocol.LeaseDetector excludes. Users enter at once, two of them as well:
// it is for the property model alone.
//
// Each letter carries in which session of its sender it was sent. So a receiver sees
// whether all letters of one of its own sessions are of one of the sender's, which is a
// later one than that of all letters before.
package sessions

import (
	"fmt"
	"math"

	"github.com/poundlock/poundlock/protocol"
)

// A Lie is what a variant makes of the events that its driver gives it, for tests that it
// notices.
type Lie uint8

// The lies.
const (
	None    Lie = iota
	Reverse     // Ended comes in place of Lapsed
	Late        // a letter is sent as if in the session before
	Repeat      // a Restore comes twice
)

// A Letter is a message: the session of its sender.
type Letter uint8

// Algorithm is the watcher with a lie. With revokes a member revokes the lease of the next
// one each time its user leaves.
func Algorithm(l Lie, revokes bool) protocol.Algorithm[Letter] {
	return protocol.Algorithm[Letter]{
		Info: protocol.Info{
			Name: "sessions", Title: "a watcher of leases among members", Source: "a toy of tests",
			Family: protocol.Permission, Users: protocol.Members, Detector: protocol.LeaseDetector,
			Tolerates: protocol.Crash | protocol.Recovery, Messages: []protocol.Message{{Name: "LETTER"}},
		},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Letter] {
			return &process{id: id, lie: l, revokes: revokes, peers: make([]peer, c.N)}
		},
		Fields: func(m Letter, c *protocol.Codec) Letter {
			protocol.Upto(c, &m, math.MaxUint8)
			return m
		},
		KindOf: func(Letter) int { return 0 },
		Ints:   func(Letter) int { return 1 },
		Text:   func(m Letter) string { return fmt.Sprintf("LETTER(%d)", m) },
		Model: protocol.Model[Letter]{
			Confluent:       func(protocol.Process[Letter], protocol.ID, Letter, bool) bool { return true },
			Interchangeable: func(protocol.Config) bool { return !revokes },
			Permute: func(p protocol.Process[Letter], f func(protocol.ID) protocol.ID) {
				w := p.(*process)
				peers := make([]peer, len(w.peers))
				for j, q := range w.peers {
					peers[f(protocol.ID(j))] = q
				}
				w.peers = peers
			},
		},
	}
}

// The standings of another member.
const (
	unknown uint8 = iota // this life begins
	lapsed
	ended
	restored
)

// A peer is what a member knows of another one.
type peer struct {
	standing uint8
	life     uint64 // the last one that Restore named
	session  uint8  // of this member with the other, counted from 1
	other    uint8  // the session of the other one, 0: no letter came in this session
	least    uint8  // the sessions of the other one's life that are possible in the next session
}

type process struct {
	id      protocol.ID
	lie     Lie
	revokes bool
	peers   []peer
	first   bool // the first life
}

// Step implements protocol.Process.
func (p *process) Step(ev protocol.Event[Letter], out *protocol.Out[Letter]) {
	switch ev.Kind {
	case protocol.Start:
		p.first = ev.Arg == 1
	case protocol.Try:
		p.write(out)
		out.Crit(0)
	case protocol.Exit:
		if next := (p.id + 1) % protocol.ID(len(p.peers)); p.revokes && next != p.id {
			out.Revoke(next)
		}
		p.write(out)
		out.Rem()
	case protocol.Receive:
		p.read(&p.peers[ev.From], ev)
	case protocol.Suspect:
		arg := ev.Arg
		if p.lie == Reverse {
			arg = protocol.Ended
		}
		p.suspect(&p.peers[ev.From], ev.From, arg)
		p.write(out)
	case protocol.Restore:
		p.restore(&p.peers[ev.From], ev)
		if p.lie == Repeat {
			p.restore(&p.peers[ev.From], ev)
		}
		p.write(out)
	default:
		panic(fmt.Sprintf("sessions: it has no event %d", ev.Kind))
	}
}

// write sends a letter to each other member, with or without a session.
func (p *process) write(out *protocol.Out[Letter]) {
	for j := range p.peers {
		if protocol.ID(j) == p.id {
			continue
		}
		session := p.peers[j].session
		if p.lie == Late && session > 1 {
			session--
		}
		out.Send(protocol.ID(j), Letter(session))
	}
}

func (p *process) read(q *peer, ev protocol.Event[Letter]) {
	n := uint8(ev.Msg)
	switch {
	case q.standing != restored:
		panic(fmt.Sprintf("sessions: #%d gets a letter of #%d, and they have no session", p.id, ev.From))
	case n == 0 || q.other != 0 && n != q.other || n < q.least:
		panic(fmt.Sprintf("sessions: #%d gets a letter of another session of #%d", p.id, ev.From))
	}
	q.other = n
}

func (p *process) suspect(q *peer, from protocol.ID, arg uint64) {
	switch {
	case arg == protocol.Lapsed && q.standing == restored:
		if q.standing = lapsed; q.other > 0 {
			q.least = q.other + 1
		}
		q.other = 0
	case arg == protocol.Ended && (q.standing == lapsed || q.standing == unknown && !p.first):
		q.standing = ended
	default:
		panic(fmt.Sprintf("sessions: #%d suspects #%d with %d out of order", p.id, from, arg))
	}
}

func (p *process) restore(q *peer, ev protocol.Event[Letter]) {
	life := ev.Arg
	if q.standing != ended && !(q.standing == unknown && p.first) || life == 0 || life < q.life {
		panic(fmt.Sprintf("sessions: #%d restores life %d of #%d out of order", p.id, life, ev.From))
	}
	if life > q.life {
		q.least = 0
	}
	q.standing, q.life = restored, life
	q.session++
}

// State implements protocol.Process.
func (p *process) State(c *protocol.Codec) {
	c.Bool(&p.first)
	for i := range p.peers {
		q := &p.peers[i]
		c.Uint(&q.life)
		for _, v := range [...]*uint8{&q.standing, &q.session, &q.other, &q.least} {
			protocol.Upto(c, v, math.MaxUint8)
		}
	}
}
