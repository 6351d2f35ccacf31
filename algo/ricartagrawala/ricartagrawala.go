package ricartagrawala

import "github.com/poundlock/poundlock/protocol"

// The kinds of Message.
const (
	Request uint8 = iota
	Reply
)

var messages = []protocol.Message{Request: {Name: "REQUEST"}, Reply: {Name: "REPLY"}}

// A Message is REQUEST(timestamp) or REPLY(clock).
type Message struct {
	Kind uint8
	Time uint64 // 0 in a REPLY of the printed variant
}

// Algorithm is the default form, with the clock on REPLY.
var Algorithm = algorithm("", "permission from everybody", true)

// Printed is the algorithm as published: REPLY carries nothing.
var Printed = algorithm("printed", "the same as published: no clock on REPLY", false, "order")

func algorithm(variant, title string, clockOnReply bool, refuted ...string) protocol.Algorithm[Message] {
	return protocol.Algorithm[Message]{
		Info: protocol.Info{
			Name:     "ricart-agrawala",
			Variant:  variant,
			Title:    title,
			Source:   "Ricart, Agrawala: An Optimal Algorithm for Mutual Exclusion in Computer Networks, CACM 1981",
			Family:   protocol.Permission,
			Users:    protocol.Members,
			Ordered:  true,
			Refuted:  refuted,
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
			return &Process{id: id, n: c.N, clockOnReply: clockOnReply, deferred: protocol.NewSet(c.N)}
		},
		Fields: Message.fields,
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints:   ints,
		Text:   text,
		Show:   show,
		Model:  protocol.Model[Message]{MapState: protocol.MapState[Message], MapMsg: protocol.MapMsg(Message.fields), Confluent: confluent},
	}
}

// Process is one participant.
type Process struct {
	id           protocol.ID
	n            int
	clockOnReply bool

	clock    uint64           // the largest timestamp seen or used
	section  protocol.Section // InRem, InTry or InCrit
	request  uint64           // timestamp of the current request, 0 in the remainder
	missing  uint64           // replies not yet received, 0 unless trying
	deferred protocol.Set     // who gets a REPLY on exit; empty in the remainder
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.try(out)
	case protocol.Exit:
		p.exit(out)
	case protocol.Receive:
		p.clock = max(p.clock, ev.Msg.Time)
		switch ev.Msg.Kind {
		case Request:
			p.onRequest(ev.From, ev.Msg.Time, out)
		case Reply:
			p.onReply(out)
		}
	default:
		panic("ricartagrawala: unexpected event")
	}
}

// try requests permission from everybody else.
func (p *Process) try(out *protocol.Out[Message]) {
	p.clock++
	p.section, p.request, p.missing = protocol.InTry, p.clock, uint64(p.n-1)
	out.Broadcast(Message{Kind: Request, Time: p.request})
	p.enterIfPermitted(out)
}

// onRequest defers the reply while inside, and while trying with an earlier
// request than (t, from).
func (p *Process) onRequest(from protocol.ID, t uint64, out *protocol.Out[Message]) {
	first := protocol.Stamp{Time: p.request, ID: p.id}.Before(protocol.Stamp{Time: t, ID: from})
	if p.section == protocol.InCrit || p.section == protocol.InTry && first {
		p.deferred.Add(from)
		return
	}
	p.reply(from, out)
}

func (p *Process) onReply(out *protocol.Out[Message]) {
	if p.missing == 0 {
		panic("ricartagrawala: a REPLY that nobody waits for")
	}
	p.missing--
	p.enterIfPermitted(out)
}

func (p *Process) enterIfPermitted(out *protocol.Out[Message]) {
	if p.missing == 0 {
		p.section = protocol.InCrit
		out.Crit(0)
	}
}

// exit answers everybody whose reply was deferred.
func (p *Process) exit(out *protocol.Out[Message]) {
	p.section, p.request = protocol.InRem, 0
	out.Rem()
	for j := range p.deferred.All() {
		p.reply(j, out)
	}
	p.deferred.Clear()
}

func (p *Process) reply(to protocol.ID, out *protocol.Out[Message]) {
	m := Message{Kind: Reply}
	if p.clockOnReply {
		m.Time = p.clock
	}
	out.Send(to, m)
}

// confluent: a REPLY that does not raise the clock is only counted. It is all the same
// for a REQUEST whether it arrives before the last REPLY or after, in the critical
// section: who sent a REPLY knows our timestamp, so that its next request is a later one,
// and every REQUEST that comes when at most one REPLY is missing is deferred.
func confluent(q protocol.Process[Message], _ protocol.ID, m Message, _ bool) bool {
	return m.Kind == Reply && m.Time <= q.(*Process).clock
}
