package ra1

import (
	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Message.
const (
	Request uint8 = iota
	Reply
)

var messages = []protocol.Message{Request: {Name: "REQUEST"}, Reply: {Name: "REPLY"}}

// A Message is REQUEST(timestamp, group) or REPLY.
type Message struct {
	Kind  uint8
	Time  uint64         // of a REQUEST
	Group protocol.Group // of a REQUEST
}

// Algorithm is Ricart and Agrawala's algorithm for groups.
var Algorithm = protocol.Algorithm[Message]{
	Info: protocol.Info{
		Name:     "ra1",
		Title:    "groups: permission from all who want another group",
		Source:   "Joung: The Congenial Talking Philosophers Problem in Computer Networks, Distributed Computing 2002",
		Family:   protocol.Permission,
		Users:    protocol.Members,
		Grouped:  true,
		Messages: messages,
		Claims: []protocol.Claim{
			protocol.Exactly(protocol.LowLoad, protocol.ToEnter, protocol.Linear(2, -2), "2(N-1)"),
			protocol.Exactly(protocol.LowLoad, protocol.Messages, protocol.Linear(2, -2), "2(N-1)"),
			protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(2), "2"),
			protocol.Exactly(protocol.HighLoad, protocol.Messages, protocol.Linear(2, -2), "2(N-1)"),
			protocol.Exactly(protocol.HighLoad, protocol.SyncDelay, protocol.Fixed(1), "1"),
		},
	},
	New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
		return &Process{id: id, n: c.N, deferred: protocol.NewSet(c.N)}
	},
	Fields: Message.fields,
	KindOf: func(m Message) int { return int(m.Kind) },
	Ints:   ints,
	Text:   text,
	Show:   show,
	Model: protocol.Model[Message]{
		MapState:  protocol.MapState[Message],
		MapMsg:    protocol.MapMsg(Message.fields),
		Confluent: confluent,
		// Those of one group do not wait for each other: while a REQUEST of one is on its way,
		// another one may enter any number of times.
		Bounds: []protocol.Bound[Message]{{Name: "timestamps apart", Max: 6, Of: func(p protocol.Process[Message]) uint64 {
			return p.(*Process).clock
		}}},
	},
}

// Process is one participant.
type Process struct {
	id protocol.ID
	n  int

	clock    uint64           // the largest timestamp seen or used
	section  protocol.Section // InRem, InTry or InCrit
	request  uint64           // timestamp of the current request, 0 unless trying
	group    protocol.Group   // of the current request, "" in the remainder
	missing  uint64           // replies not yet received, 0 unless trying
	deferred protocol.Set     // who gets a REPLY on exit; empty in the remainder
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.try(protocol.Groups(ev.Data), out)
	case protocol.Exit:
		p.exit(out)
	case protocol.Receive:
		switch ev.Msg.Kind {
		case Request:
			p.onRequest(ev.From, ev.Msg, out)
		case Reply:
			p.onReply(out)
		}
	default:
		panic("ra1: unexpected event")
	}
}

// try requests permission from everybody else.
func (p *Process) try(wanted protocol.Groups, out *protocol.Out[Message]) {
	if wanted.Len() > 1 {
		panic("ra1: a request for several groups")
	}
	p.clock++
	p.section, p.request, p.group, p.missing = protocol.InTry, p.clock, protocol.Group(wanted), uint64(p.n-1)
	out.Broadcast(Message{Kind: Request, Time: p.request, Group: p.group})
	p.enterIfPermitted(out)
}

// onRequest defers the reply to a request of another group while inside, and while trying
// with an earlier request. To one of the same group there is nothing to object, not even
// from inside.
func (p *Process) onRequest(from protocol.ID, m Message, out *protocol.Out[Message]) {
	p.clock = max(p.clock, m.Time)
	first := protocol.Stamp{Time: p.request, ID: p.id}.Before(protocol.Stamp{Time: m.Time, ID: from})
	if !p.group.Shares(m.Group) && (p.section == protocol.InCrit || p.section == protocol.InTry && first) {
		p.deferred.Add(from)
		return
	}
	out.Send(from, Message{Kind: Reply})
}

func (p *Process) onReply(out *protocol.Out[Message]) {
	if p.missing == 0 {
		panic("ra1: a REPLY that nobody waits for")
	}
	p.missing--
	p.enterIfPermitted(out)
}

func (p *Process) enterIfPermitted(out *protocol.Out[Message]) {
	if p.missing == 0 {
		p.section, p.request = protocol.InCrit, 0
		out.CritIn(p.group, 0)
	}
}

// exit answers everybody whose reply was deferred.
func (p *Process) exit(out *protocol.Out[Message]) {
	p.section, p.group = protocol.InRem, ""
	out.Rem()
	for j := range p.deferred.All() {
		out.Send(j, Message{Kind: Reply})
	}
	p.deferred.Clear()
}

// confluent: a REPLY is only counted. Who sent one to a request knows its timestamp: the
// next request of that process is a later one. So it is all the same for a REQUEST of another
// group whether it arrives before the last REPLY or after, in the critical section: it is
// deferred. One of the same group is answered in both.
func confluent(_ protocol.Process[Message], _ protocol.ID, m Message, _ bool) bool {
	return m.Kind == Reply
}
