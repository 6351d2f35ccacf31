package ra2

import (
	"fmt"
	"math"

	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Message.
const (
	Request uint8 = iota
	Reply
	Start
)

var messages = []protocol.Message{Request: {Name: "REQUEST"}, Reply: {Name: "REPLY"}, Start: {Name: "START"}}

// A Message is REQUEST(timestamp, group), REPLY(number, done, grants) or
// START(number, grants, timestamp). The requests of a process are numbered from 1; because channels
// are FIFO, who receives them counts, and a REQUEST need not carry its number.
type Message struct {
	Kind   uint8
	Each   uint8          // of a REPLY and a START: how many integers each of Grants counts
	Number uint32         // of a REPLY and a START: the receiver's request that it is for
	Done   uint32         // of a REPLY: the sender's request that it completed last, 0: none
	Time   uint64         // of a REQUEST; of a START, that of the leader's request
	Group  protocol.Group // of a REQUEST
	Grants Grants         // of a REPLY and a START
}

// Values of the option "invite".
const (
	InviteOnEntry  = 0
	InviteArrivals = 1
)

var options = []protocol.Option{
	choice("invite", InviteArrivals, 0, 1, "whom a leader invites: those who wait at its entry, or arrivals while it is inside, too", "entry", "arrivals"),
	choice("selfgrant", 0, 0, 1, "whether a leader counts as invited by itself", "no", "yes"),
	choice("full", 0, 0, 1, "whether messages carry the whole vector, or what changed since the last one to the same process", "no", "yes"),
	choice("entry", 2, 1, 2, "integers that count for an entry of the vector: 1, its value, or 2, its index and its value (default 2)"),
}

func choice(name string, byDefault, least, most int64, doc string, values ...string) protocol.Option {
	within := func(protocol.Config) (int64, int64) { return least, most }
	o := protocol.Option{
		Name: name, Default: func(protocol.Config) int64 { return byDefault }, Sound: within, Values: values, Doc: doc,
	}
	if values == nil {
		o.Range = within
	} else {
		o.Doc += fmt.Sprintf(" (default %s)", values[byDefault])
	}
	return o
}

var info = protocol.Info{
	Name:     "ra2",
	Title:    "groups: a leader invites followers",
	Source:   "Joung: The Congenial Talking Philosophers Problem in Computer Networks, Distributed Computing 2002",
	Family:   protocol.Permission,
	Users:    protocol.Members,
	Grouped:  true,
	FIFO:     true,
	Messages: messages,
	Options:  options,
	Claims: []protocol.Claim{
		protocol.Exactly(protocol.LowLoad, protocol.ToEnter, protocol.Linear(2, -2), "2(N-1)"),
		protocol.Exactly(protocol.LowLoad, protocol.Messages, protocol.Linear(2, -2), "2(N-1)"),
		protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(2), "2"),
		protocol.Between(protocol.HighLoad, protocol.Messages, protocol.Linear(1, -1), protocol.Linear(3, -3), "at most 3(N-1)"),
	},
}

// Algorithm is the reconstruction that doc.go describes.
var Algorithm = protocol.Algorithm[Message]{
	Info:   info,
	New:    newProcess,
	Fields: Message.fields,
	KindOf: func(m Message) int { return int(m.Kind) },
	Ints:   ints,
	Text:   text,
	Model:  model,
}

// Process is one participant.
type Process struct {
	id      protocol.ID
	arrives bool  // a leader invites those who come while it is inside
	self    bool  // a leader counts as invited by itself
	each    uint8 // integers that count for an entry of the vector

	clock    uint64           // the largest timestamp seen or used
	section  protocol.Section // InRem, InTry or InCrit
	leads    bool             // it is inside with the REPLYs of all
	number   uint32           // of its last request, 0 before the first
	request  uint64           // timestamp of the current request, 0 unless trying, or inside as a leader that may invite
	group    protocol.Group   // of the current request, "" in the remainder
	missing  uint32           // how many have not replied to it; 0 unless trying
	replied  protocol.Set     // who has; empty unless trying
	deferred protocol.Set     // who may get a REPLY on exit; empty in the remainder
	granted  vector           // G

	// What others have told of themselves. Apart, because most events need a part of it.
	heard  []uint32         // by process: how many requests it has made
	open   protocol.Set     // who is not known to have completed the last of them
	groups []protocol.Group // by process: which that was for
}

func newProcess(id protocol.ID, c protocol.Config) protocol.Process[Message] {
	return &Process{
		id:       id,
		arrives:  info.Option(c, "invite") == InviteArrivals,
		self:     info.Option(c, "selfgrant") == 1,
		each:     uint8(info.Option(c, "entry")),
		replied:  protocol.NewSet(c.N),
		deferred: protocol.NewSet(c.N),
		granted:  newVector(id, c.N, info.Option(c, "full") == 1),
		heard:    make([]uint32, c.N),
		open:     protocol.NewSet(c.N),
		groups:   make([]protocol.Group, c.N),
	}
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
			p.onRequest(ev.From, ev.Msg.Time, ev.Msg.Group, out)
		case Reply:
			p.onReply(ev.From, &ev.Msg, out)
		case Start:
			p.onStart(ev.From, &ev.Msg, out)
		}
	default:
		panic("ra2: unexpected event")
	}
}

// try requests permission from everybody else.
func (p *Process) try(wanted protocol.Groups, out *protocol.Out[Message]) {
	if wanted.Len() > 1 {
		panic("ra2: a request for several groups")
	}
	if p.number == math.MaxUint32 {
		panic("ra2: requests are numbered with 32 bits")
	}
	p.clock++
	p.number++
	p.section, p.request, p.group, p.missing = protocol.InTry, p.clock, protocol.Group(wanted), uint32(len(p.heard)-1)
	out.Broadcast(Message{Kind: Request, Time: p.request, Group: p.group})
	p.leadIfPermitted(out)
}

// onRequest answers a request as Ricart and Agrawala do, but that requests of one group are
// no obstacle to each other, and that a leader inside invites them. A process that is known to be
// invited needs no answer.
func (p *Process) onRequest(j protocol.ID, time uint64, g protocol.Group, out *protocol.Out[Message]) {
	p.clock = max(p.clock, time)
	p.heard[j]++
	p.open.Add(j)
	p.groups[j] = g
	first := protocol.Stamp{Time: p.request, ID: p.id}.Before(protocol.Stamp{Time: time, ID: j})
	switch {
	case p.invited(j):
	case p.group.Shares(g) && p.leads && p.arrives:
		p.invite(j, out)
	case !p.group.Shares(g) && (p.section == protocol.InCrit || p.section == protocol.InTry && first):
		p.deferred.Add(j)
	default:
		p.reply(j, out)
	}
	p.leadIfPermitted(out)
}

// onReply counts a REPLY to the current request: those to an earlier one, which was granted
// by invitation before they arrived, only tell what their senders know.
func (p *Process) onReply(j protocol.ID, m *Message, out *protocol.Out[Message]) {
	if m.Done == p.heard[j] {
		p.open.Remove(j)
	}
	p.granted.merge(m.Grants)
	if p.section == protocol.InTry && m.Number == p.number && !p.replied.Has(j) {
		p.replied.Add(j)
		p.missing--
	}
	p.leadIfPermitted(out)
}

// leadIfPermitted enters as a leader once all have replied, unless somebody was invited into
// another group and may still be inside.
func (p *Process) leadIfPermitted(out *protocol.Out[Message]) {
	if p.section == protocol.InTry && p.missing == 0 && !p.obstructed() {
		p.enter(p.id, p.request, out)
	}
}

// obstructed: somebody has been invited who is not known to be out again, and not known to
// want the same group. The request that was granted may not even have arrived; but where a
// later one has, it was completed.
func (p *Process) obstructed() bool {
	for j, number := range p.granted.numbers {
		if heard := p.heard[j]; protocol.ID(j) != p.id && (number > heard || number == heard && p.excludes(protocol.ID(j))) {
			return true
		}
	}
	return false
}

// excludes: the last request heard of j is for another group, and not known to be completed.
func (p *Process) excludes(j protocol.ID) bool { return p.open.Has(j) && !p.group.Shares(p.groups[j]) }

// onStart follows an invitation for the current request. One for an earlier request is of a
// second leader, or came when the process had all REPLYs.
func (p *Process) onStart(leader protocol.ID, m *Message, out *protocol.Out[Message]) {
	p.granted.merge(m.Grants)
	if p.section == protocol.InTry && m.Number == p.number {
		p.enter(leader, m.Time, out)
	}
}

// enter lets the user in, with the fencing token of its leader's request. A leader invites all who wait for the same group.
func (p *Process) enter(leader protocol.ID, time uint64, out *protocol.Out[Message]) {
	p.section, p.leads, p.missing = protocol.InCrit, leader == p.id, 0
	p.replied.Clear()
	out.CritIn(p.group, protocol.Stamp{Time: time, ID: leader}.Number(len(p.heard)))
	if p.leads {
		p.lead(out)
	}
	if !p.leads || !p.arrives || p.group.Exclusive() {
		p.request = 0 // it invites nobody any more
	}
}

func (p *Process) lead(out *protocol.Out[Message]) {
	if p.self {
		p.granted.set(p.granted.write(Grant{uint32(p.id), p.number}))
	}
	for j := range p.open.All() {
		if p.group.Shares(p.groups[j]) && !p.invited(j) {
			p.invite(j, out)
		}
	}
}

// exit sends the REPLYs that were deferred. A follower sends one to each request that waits
// for another group, even where it has sent one before: they tell that it is out. A process that is
// known to be invited needs neither.
func (p *Process) exit(out *protocol.Out[Message]) {
	follows := !p.leads
	p.section, p.leads = protocol.InRem, false
	p.request = 0
	out.Rem()
	for j := range p.open.All() {
		if p.waits(j) && (follows || p.deferred.Has(j)) {
			p.reply(j, out)
		}
	}
	p.deferred.Clear()
	p.group = ""
}

// waits: j is known to want another group than p.group, and not known to be invited.
func (p *Process) waits(j protocol.ID) bool { return p.excludes(j) && !p.invited(j) }

// invited: the last request heard of j is known to be granted by invitation, or a later one.
func (p *Process) invited(j protocol.ID) bool { return p.granted.numbers[j] >= p.heard[j] }

// invite grants the open request of j.
func (p *Process) invite(j protocol.ID, out *protocol.Out[Message]) {
	number := p.heard[j]
	p.granted.set(p.granted.write(Grant{uint32(j), number}))
	out.Send(j, Message{Kind: Start, Each: p.each, Number: number, Time: p.request, Grants: p.granted.tell(j)})
}

func (p *Process) reply(j protocol.ID, out *protocol.Out[Message]) {
	out.Send(j, Message{Kind: Reply, Each: p.each, Number: p.heard[j], Done: p.completed(), Grants: p.granted.tell(j)})
}

// completed is the number of the own request that was completed last.
func (p *Process) completed() uint32 {
	if p.section == protocol.InRem {
		return p.number
	}
	return p.number - 1
}
