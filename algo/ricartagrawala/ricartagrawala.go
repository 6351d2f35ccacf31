package ricartagrawala

import "github.com/poundlock/poundlock/protocol"

// The kinds of Message.
const (
	Request uint8 = iota
	Reply
)

var messages = []protocol.Message{Request: {Name: "REQUEST"}, Reply: {Name: "REPLY"}}

// A Message is REQUEST(timestamp), with the group where there are groups, or REPLY(clock).
type Message struct {
	Kind  uint8
	Time  uint64 // 0 in a REPLY that does not carry the clock
	Group protocol.Group
}

// A form is what the algorithms differ in that have this process.
type form struct {
	clockOnReply bool
	groups       bool
}

// Algorithm is the default form, with the clock on REPLY.
var Algorithm = algorithm(protocol.Info{Title: "permission from everybody"}, form{clockOnReply: true})

// Printed is the algorithm as published: REPLY carries nothing.
var Printed = algorithm(protocol.Info{
	Variant: "printed", Title: "the same as published: no clock on REPLY", Refuted: []string{"order"},
}, form{})

func algorithm(i protocol.Info, f form) protocol.Algorithm[Message] {
	i.Name, i.Ordered = "ricart-agrawala", true
	i.Source = "Ricart, Agrawala: An Optimal Algorithm for Mutual Exclusion in Computer Networks, CACM 1981"
	return f.algorithm(i)
}

// ForGroups is the printed form for users that want groups, under another name: requests for
// the same group are no obstacle to each other.
func ForGroups(i protocol.Info) protocol.Algorithm[Message] {
	i.Grouped = true
	a := form{groups: true}.algorithm(i)
	// Those of one group do not wait for each other: while a REQUEST of one is on its way,
	// another one may enter any number of times.
	a.Bounds = []protocol.Bound{protocol.NewBound("timestamps apart", 6, func(p *Process) uint64 { return p.clock })}
	return a
}

func (f form) algorithm(i protocol.Info) protocol.Algorithm[Message] {
	i.Family, i.Users, i.Messages = protocol.Permission, protocol.Members, messages
	i.Claims = []protocol.Claim{
		protocol.Exactly(protocol.LowLoad, protocol.ToEnter, protocol.Linear(2, -2), "2(N-1)"),
		protocol.Exactly(protocol.LowLoad, protocol.Messages, protocol.Linear(2, -2), "2(N-1)"),
		protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(2), "2"),
		protocol.Exactly(protocol.HighLoad, protocol.Messages, protocol.Linear(2, -2), "2(N-1)"),
		protocol.Exactly(protocol.HighLoad, protocol.SyncDelay, protocol.Fixed(1), "1"),
	}
	return protocol.Algorithm[Message]{
		Info: i,
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
			return &Process{id: id, n: c.N, form: f, deferred: protocol.NewSet(c.N)}
		},
		Fields: f.fields,
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints:   f.ints,
		Text:   f.text,
		Model:  protocol.Model[Message]{MapState: protocol.MapState[Message], MapMsg: protocol.MapMsg(f.fields), Confluent: confluent},
	}
}

// Process is one participant.
type Process struct {
	id protocol.ID
	n  int
	form

	clock    uint64           // the largest timestamp seen or used
	section  protocol.Section // InRem, InTry or InCrit
	request  uint64           // timestamp of the current request, 0 in the remainder
	group    protocol.Group   // of the current request, "" in the remainder and without groups
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
		p.clock = max(p.clock, ev.Msg.Time)
		switch ev.Msg.Kind {
		case Request:
			p.onRequest(ev.From, ev.Msg, out)
		case Reply:
			p.onReply(out)
		}
	default:
		panic("ricartagrawala: unexpected event")
	}
}

// try requests permission from everybody else.
func (p *Process) try(wanted protocol.Groups, out *protocol.Out[Message]) {
	if wanted.Len() > 1 {
		panic("ricartagrawala: a request for several groups")
	}
	p.clock++
	p.section, p.request, p.group, p.missing = protocol.InTry, p.clock, protocol.Group(wanted), uint64(p.n-1)
	out.Broadcast(Message{Kind: Request, Time: p.request, Group: p.group})
	p.enterIfPermitted(out)
}

// onRequest defers the reply while inside, and while trying with an earlier
// request than that of from. To one for the same group there is nothing to object, not even
// from inside; without groups no request is.
func (p *Process) onRequest(from protocol.ID, m Message, out *protocol.Out[Message]) {
	first := protocol.Stamp{Time: p.request, ID: p.id}.Before(protocol.Stamp{Time: m.Time, ID: from})
	if (p.section == protocol.InCrit || p.section == protocol.InTry && first) && !p.group.Shares(m.Group) {
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
		out.CritIn(p.group, protocol.Stamp{Time: p.request, ID: p.id}.Number(p.n))
	}
}

// exit answers everybody whose reply was deferred.
func (p *Process) exit(out *protocol.Out[Message]) {
	p.section, p.request, p.group = protocol.InRem, 0, ""
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
// section: a process that sent a REPLY knows our timestamp, so that its next request is a later
// one, and every REQUEST that comes when at most one REPLY is missing is deferred, except one
// for the same group, which is answered in both cases.
func confluent(q protocol.Process[Message], _ protocol.ID, m Message, _ bool) bool {
	return m.Kind == Reply && m.Time <= q.(*Process).clock
}
