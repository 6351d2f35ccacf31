package centralised

import "github.com/poundlock/poundlock/protocol"

// The kinds of Message.
const (
	Enter uint8 = iota
	Granted
	Released
	Denied
)

var messages = []protocol.Message{
	Enter: {Name: "ENTER"}, Granted: {Name: "GRANTED"}, Released: {Name: "RELEASED"}, Denied: {Name: "DENIED"},
}

// A Message is its kind.
type Message struct{ Kind uint8 }

// Algorithm is the default form: a process that has to wait hears nothing until it may enter.
var Algorithm = algorithm("", "permission from a coordinator", false)

// WithDenied is the form for asynchronous systems: a process that has to wait is told so.
var WithDenied = algorithm("denied", "the same, and DENIED to who has to wait", true)

func algorithm(variant, title string, denies bool) protocol.Algorithm[Message] {
	kinds := messages
	if !denies {
		kinds = messages[:Denied]
	}
	return protocol.Algorithm[Message]{
		Info: protocol.Info{
			Name:     "centralised",
			Variant:  variant,
			Title:    title,
			Source:   "folklore; Lamport: Time, Clocks, and the Ordering of Events in a Distributed System, CACM 1978",
			Family:   protocol.Permission,
			Users:    protocol.Members,
			Messages: kinds,
			Claims:   claims(denies),
		},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
			return &Process{id: id, n: c.N, coordinator: protocol.ID(c.N - 1), denies: denies}
		},
		Fields: Message.fields,
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints:   func(Message) int { return 0 },
		Text:   func(m Message) string { return messages[m.Kind].Name },
		Model: protocol.Model[Message]{
			// A DENIED changes nothing, however often it comes and whenever.
			Idempotent: func(m Message) bool { return m.Kind == Denied },
			Confluent:  confluent,
		},
	}
}

// claims are means over the processes, of which one, the coordinator, has its entries for
// nothing. Under load they come in turn, so that of n handovers n-2 take two hops, and
// those from and to the coordinator one.
func claims(denies bool) []protocol.Claim {
	mean := protocol.AllButOne
	list := []protocol.Claim{
		protocol.Exactly(protocol.LowLoad, protocol.ToEnter, mean(2), "2, the coordinator 0: mean 2(N-1)/N").PublishedAs("2"),
		protocol.Exactly(protocol.LowLoad, protocol.Messages, mean(3), threeEach).PublishedAs("3"),
		protocol.Exactly(protocol.LowLoad, protocol.Waiting, mean(2), "2, the coordinator 0: mean 2(N-1)/N").PublishedAs("2"),
		// A run ends before the last handover to the coordinator, one hop.
		protocol.Between(protocol.HighLoad, protocol.SyncDelay, mean(2), mean(2.02), "2, from or to the coordinator 1: mean 2(N-1)/N").PublishedAs("2"),
	}
	if !denies {
		return append(list, protocol.Exactly(protocol.HighLoad, protocol.Messages, mean(3), threeEach).PublishedAs("3"))
	}
	// A process that asks when nobody is inside, at the beginning, is not denied.
	return append(list, protocol.Between(protocol.HighLoad, protocol.Messages, mean(3.9), mean(4), "4, the coordinator 0: mean 4(N-1)/N").PublishedAs("4"))
}

const threeEach = "3, the coordinator 0: mean 3(N-1)/N"

// Process is one participant, and one of them is the coordinator.
type Process struct {
	id          protocol.ID
	n           int
	coordinator protocol.ID
	denies      bool

	trying bool // its ENTER has not been granted yet

	// The rest is the coordinator's, and empty elsewhere.
	busy   bool        // somebody was let in, and its RELEASED has not come yet
	holder protocol.ID // who that is; 0 where nobody is
	queue  []uint64    // whose ENTER waits, in the order of arrival; empty unless busy
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.trying = true
		p.ask(Enter, out)
	case protocol.Exit:
		out.Rem()
		p.ask(Released, out)
	case protocol.Receive:
		if p.id == p.coordinator {
			p.serve(ev.Msg.Kind, ev.From, out)
		} else {
			p.onAnswer(ev.Msg.Kind, out)
		}
	default:
		panic("centralised: unexpected event")
	}
}

// ask takes ENTER or RELEASED to the coordinator.
func (p *Process) ask(kind uint8, out *protocol.Out[Message]) {
	if p.id == p.coordinator {
		p.serve(kind, p.id, out)
		return
	}
	out.Send(p.coordinator, Message{kind})
}

// serve is the coordinator.
func (p *Process) serve(kind uint8, from protocol.ID, out *protocol.Out[Message]) {
	switch kind {
	case Enter:
		p.onEnter(from, out)
	case Released:
		p.onReleased(from, out)
	default:
		panic("centralised: an answer to the coordinator")
	}
}

// onEnter lets from in if nobody is inside, and else queues its request. From itself may
// still count as inside, when its ENTER has overtaken its RELEASED.
func (p *Process) onEnter(from protocol.ID, out *protocol.Out[Message]) {
	if !p.busy {
		p.grant(from, out)
		return
	}
	p.queue = append(p.queue, uint64(from))
	if p.denies && from != p.id {
		out.Send(from, Message{Denied})
	}
}

// onReleased lets in whose request has waited longest.
func (p *Process) onReleased(from protocol.ID, out *protocol.Out[Message]) {
	if !p.busy || p.holder != from {
		panic("centralised: RELEASED by who is not inside")
	}
	p.busy, p.holder = false, 0
	if len(p.queue) > 0 {
		next := protocol.ID(p.queue[0])
		p.queue = append(p.queue[:0], p.queue[1:]...)
		p.grant(next, out)
	}
}

func (p *Process) grant(to protocol.ID, out *protocol.Out[Message]) {
	p.busy, p.holder = true, to
	if to == p.id {
		p.onAnswer(Granted, out)
		return
	}
	out.Send(to, Message{Granted})
}

// onAnswer enters. DENIED changes nothing: GRANTED follows, or has overtaken it.
func (p *Process) onAnswer(kind uint8, out *protocol.Out[Message]) {
	switch {
	case kind == Denied && p.denies:
	case kind == Granted && p.trying:
		p.trying = false
		out.Crit(0)
	default:
		panic("centralised: an answer that nobody waits for")
	}
}

// confluent: to who waits for GRANTED nothing else happens but DENIED.
func confluent(_ protocol.Process[Message], _ protocol.ID, m Message, _ bool) bool {
	return m.Kind == Granted
}
