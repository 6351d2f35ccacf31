package lamport

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Message.
const (
	Request uint8 = iota
	Ack
	Release
)

var messages = []protocol.Message{
	Request: {Name: "REQUEST"}, Ack: {Name: "ACK"}, Release: {Name: "RELEASE"},
}

// A Message has the timestamp at which it was sent, by its sender's clock; that of a
// REQUEST is the request's.
type Message struct {
	Kind uint8
	Time uint64
}

// Algorithm is the algorithm as published, whose channels are FIFO.
var Algorithm = algorithm("", "a queue of requests at everybody, in the order of logical clocks", true, 1)

// Unordered is the same on channels that are not FIFO, to show what they are for.
var Unordered = algorithm("unordered", "the same on channels that are not FIFO: two inside", false, 0,
	"exclusion", "deadlock", "progress", "starvation", "order")

func algorithm(variant, title string, fifo bool, tokens uint64, refuted ...string) protocol.Algorithm[Message] {
	return protocol.Algorithm[Message]{
		Info: protocol.Info{
			Name:     "lamport",
			Variant:  variant,
			Title:    title,
			Source:   "Lamport: Time, Clocks, and the Ordering of Events in a Distributed System, CACM 1978",
			Family:   protocol.Permission,
			Users:    protocol.Members,
			Ordered:  true,
			Refuted:  refuted,
			FIFO:     fifo,
			Messages: messages,
			Claims: []protocol.Claim{
				protocol.Exactly(protocol.LowLoad, protocol.ToEnter, protocol.Linear(2, -2), "2(N-1)"),
				protocol.Exactly(protocol.LowLoad, protocol.Messages, protocol.Linear(3, -3), "3(N-1)"),
				protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(2), "2"),
				protocol.Exactly(protocol.HighLoad, protocol.Messages, protocol.Linear(3, -3), "3(N-1)"),
				protocol.Exactly(protocol.HighLoad, protocol.SyncDelay, protocol.Fixed(1), "1"),
			},
		},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
			return &Process{id: id, n: c.N, tokens: tokens, silent: protocol.NewSet(c.N)}
		},
		Fields: Message.fields,
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints:   func(Message) int { return 1 },
		Text:   text,
		Model:  protocol.Model[Message]{MapState: protocol.MapState[Message], MapMsg: protocol.MapMsg(Message.fields), Confluent: confluent},
	}
}

// Process is one participant.
type Process struct {
	id     protocol.ID
	n      int
	tokens uint64 // 0: entries are in no order, and have none

	clock   uint64           // later than, or equal to, all that this process sent and received
	section protocol.Section // InRem, InTry or InCrit
	queue   []protocol.Stamp // in their order; with FIFO channels at most one of each process
	own     protocol.Stamp   // of this process, in the queue unless in InRem, and then zero
	silent  protocol.Set     // from whom nothing later than own has arrived; empty unless in InTry
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
		p.receive(ev.From, ev.Msg, out)
	default:
		panic("lamport: unexpected event")
	}
}

// try is rule 1: to request, tell everybody, and put the request into the own queue.
func (p *Process) try(out *protocol.Out[Message]) {
	p.section = protocol.InTry
	p.own = protocol.Stamp{Time: p.tick(), ID: p.id}
	p.insert(p.own)
	for j := range protocol.ID(p.n) {
		if j != p.id {
			p.silent.Add(j)
		}
	}
	out.Broadcast(Message{Request, p.own.Time})
	p.enterIfFirst(out)
}

// receive is rules 2 and 4: a request is queued and acknowledged, and a release takes its
// sender's request out of the queue.
func (p *Process) receive(from protocol.ID, m Message, out *protocol.Out[Message]) {
	p.clock = max(p.clock, m.Time)
	switch m.Kind {
	case Request:
		p.insert(protocol.Stamp{Time: m.Time, ID: from})
		out.Send(from, Message{Ack, p.tick()})
	case Release:
		p.remove(from)
	}
	if p.own.Before(protocol.Stamp{Time: m.Time, ID: from}) {
		p.silent.Remove(from)
	}
	p.enterIfFirst(out)
}

// exit is rule 3.
func (p *Process) exit(out *protocol.Out[Message]) {
	p.section, p.own = protocol.InRem, protocol.Stamp{}
	out.Rem()
	p.remove(p.id)
	out.Broadcast(Message{Release, p.tick()})
}

// enterIfFirst is rule 5: the own request is before all others in the queue, and something
// later than it has arrived from everybody. On FIFO channels nobody's earlier request can
// then be on its way.
func (p *Process) enterIfFirst(out *protocol.Out[Message]) {
	if p.section == protocol.InTry && p.queue[0] == p.own && p.silent.Len() == 0 {
		p.section = protocol.InCrit
		out.Crit(p.tokens * p.own.Number(p.n))
	}
}

// tick is the clock before a message is sent.
func (p *Process) tick() uint64 {
	p.clock++
	return p.clock
}

func (p *Process) insert(r protocol.Stamp) {
	i := len(p.queue)
	for i > 0 && r.Before(p.queue[i-1]) {
		i--
	}
	p.queue = slices.Insert(p.queue, i, r)
}

// remove takes the request of j out, if it has arrived.
func (p *Process) remove(j protocol.ID) {
	if i := slices.IndexFunc(p.queue, func(r protocol.Stamp) bool { return r.ID == j }); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
}

// Waiting is how many requests of others are in the queue.
func (p *Process) Waiting() int {
	if p.section == protocol.InRem {
		return len(p.queue)
	}
	return len(p.queue) - 1
}

// confluent: an ACK that does not raise the clock says only that its sender has answered.
func confluent(q protocol.Process[Message], _ protocol.ID, m Message, _ bool) bool {
	return m.Kind == Ack && m.Time <= q.(*Process).clock
}
