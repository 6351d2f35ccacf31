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
var Algorithm = algorithm("", "a queue of requests at everybody, in the order of logical clocks", true)

// Unordered is the same on channels that are not FIFO, to show what they are for.
var Unordered = algorithm("unordered", "the same on channels that are not FIFO: two inside", false,
	"exclusion", "deadlock", "progress", "starvation", "order")

func algorithm(variant, title string, fifo bool, refuted ...string) protocol.Algorithm[Message] {
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
			return &Process{id: id, n: c.N, silent: make([]uint64, (c.N+63)/64)}
		},
		Fields:  protocol.Coded(appendMessage, readMessage),
		KindOf:  func(m Message) int { return int(m.Kind) },
		Ints:    func(Message) int { return 1 },
		Text:    text,
		Show:    show,
		Waiting: waiting,
		Model:   protocol.Model[Message]{MapState: mapState, MapMsg: mapMsg, Confluent: confluent},
	}
}

// A request is one of process id, made when its clock showed time.
type request struct {
	time uint64
	id   protocol.ID
}

// before is the total order of the paper: by time, and by process where times are equal.
func (r request) before(s request) bool {
	return r.time < s.time || r.time == s.time && r.id < s.id
}

// Process is one participant.
type Process struct {
	id protocol.ID
	n  int

	clock   uint64           // later than, or equal to, all that this process sent and received
	section protocol.Section // InRem, InTry or InCrit
	queue   []request        // in their order; with FIFO channels at most one of each process
	own     request          // of this process, in the queue unless in InRem, and then zero
	silent  []uint64         // bit set: from whom nothing later than own has arrived; empty unless in InTry
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
	p.own = request{p.tick(), p.id}
	p.insert(p.own)
	for j := range protocol.ID(p.n) {
		if j != p.id {
			p.silent[j/64] |= 1 << (j % 64)
		}
	}
	out.Broadcast(Message{Request, p.own.time})
	p.enterIfFirst(out)
}

// receive is rules 2 and 4: a request is queued and acknowledged, and a release takes its
// sender's request out of the queue.
func (p *Process) receive(from protocol.ID, m Message, out *protocol.Out[Message]) {
	p.clock = max(p.clock, m.Time)
	switch m.Kind {
	case Request:
		p.insert(request{m.Time, from})
		out.Send(from, Message{Ack, p.tick()})
	case Release:
		p.remove(from)
	}
	if p.own.before(request{m.Time, from}) {
		p.silent[from/64] &^= 1 << (from % 64)
	}
	p.enterIfFirst(out)
}

// exit is rule 3.
func (p *Process) exit(out *protocol.Out[Message]) {
	p.section, p.own = protocol.InRem, request{}
	out.Rem()
	p.remove(p.id)
	out.Broadcast(Message{Release, p.tick()})
}

// enterIfFirst is rule 5: the own request is before all others in the queue, and something
// later than it has arrived from everybody. On FIFO channels nobody's earlier request can
// then be on its way.
func (p *Process) enterIfFirst(out *protocol.Out[Message]) {
	if p.section != protocol.InTry || p.queue[0] != p.own {
		return
	}
	for _, w := range p.silent {
		if w != 0 {
			return
		}
	}
	p.section = protocol.InCrit
	out.Crit(0)
}

// tick is the clock before a message is sent.
func (p *Process) tick() uint64 {
	p.clock++
	return p.clock
}

func (p *Process) insert(r request) {
	i := len(p.queue)
	for i > 0 && r.before(p.queue[i-1]) {
		i--
	}
	p.queue = slices.Insert(p.queue, i, r)
}

// remove takes the request of j out, if it has arrived.
func (p *Process) remove(j protocol.ID) {
	if i := slices.IndexFunc(p.queue, func(r request) bool { return r.id == j }); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
}

// waiting is how many requests of others are in the queue of p.
func waiting(p protocol.Process[Message]) int {
	s := p.(*Process)
	if s.section == protocol.InRem {
		return len(s.queue)
	}
	return len(s.queue) - 1
}

// confluent: an ACK that does not raise the clock says only that its sender has answered.
func confluent(q protocol.Process[Message], _ protocol.ID, m Message, _ bool) bool {
	return m.Kind == Ack && m.Time <= q.(*Process).clock
}
