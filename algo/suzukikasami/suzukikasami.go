package suzukikasami

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Message.
const (
	Request uint8 = iota
	Token
)

var messages = []protocol.Message{Request: {Name: "REQUEST"}, Token: {Name: "TOKEN"}}

// A Message is REQUEST(number) or TOKEN(LN, Q), which carries the fencing token of the last entry, too.
type Message struct {
	Kind   uint8
	Number uint64   // of a REQUEST: its sender's, counted from 1
	LN, Q  []uint64 // of a TOKEN: two parts of one vector, frozen once sent
	Fence  uint64   // of a TOKEN
}

// Algorithm is the default form, with the queue on the token.
var Algorithm = algorithm(protocol.Info{
	Title:  "one token, requested from everybody",
	Source: "Suzuki, Kasami: A Distributed Mutual Exclusion Algorithm, ACM TOCS 1985",
}, false)

// RicartAgrawala is the token form of Ricart and Agrawala: no queue, and the token goes to
// the next process of a ring that has asked for it.
var RicartAgrawala = algorithm(protocol.Info{
	Variant: "ricart-agrawala-token",
	Title:   "the same with a token that goes to the next one of a ring",
	Source:  "Ricart, Agrawala: Authors' Response to On Mutual Exclusion in Computer Networks, CACM 1983",
}, true)

func algorithm(i protocol.Info, ring bool) protocol.Algorithm[Message] {
	i.Name, i.Family, i.Users, i.Messages, i.Claims = "suzuki-kasami", protocol.Token, protocol.Members, messages, claims
	return protocol.Algorithm[Message]{
		Info: i,
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
			p := &Process{
				id: id, n: c.N, ring: ring,
				rn: make([]uint64, c.N), ln: make([]uint64, c.N),
				queue: make([]uint64, 0, c.N), queued: protocol.NewSet(c.N),
			}
			p.token = id == protocol.ID(c.N-1)
			return p
		},
		Fields: Message.fields,
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints:   ints,
		Text:   func(m Message) string { return text(m, ring) },
		Model:  model,
	}
}

// oneToken is behind mutual exclusion. To receive the token does not make it two, or none.
var oneToken = func() protocol.Invariant {
	i := protocol.OneToken("suzuki-kasami/token", func(p *Process) bool { return p.token }, func(m Message) bool { return m.Kind == Token })
	i.Stable = true
	return i
}()

var model = protocol.Model[Message]{
	MapState:  protocol.MapState[Message],
	MapMsg:    protocol.MapMsg(Message.fields),
	Confluent: confluent,
	// The checker takes from the numbers of each process what all others know of
	// it; what is left is how many requests somebody has not heard of.
	// Nothing is left of how many entries there were, except behind a wrapper that has no counters.
	Bounds: []protocol.Bound{
		protocol.NewBound("requests unheard of", 2, func(p *Process) uint64 { return slices.Max(p.rn) }),
		protocol.NewBound("entries", 4, func(p *Process) uint64 { return p.fence }),
	},
	Invariants: []protocol.Invariant{oneToken},
}

// claims holds for n > 1. At low load the processes come in turn, the holder of
// the first token last: it has given the token away by then, and each entry costs
// n. Under load all come at once, and its first entry is free: over E entries of
// each process that takes 1/E from the mean, and at most as much again when the
// holder comes back before the first requests reach it. The bound suits E >= 10.
var claims = []protocol.Claim{
	protocol.Exactly(protocol.LowLoad, protocol.ToEnter, protocol.Linear(1, 0), "N").PublishedAs("0 or N"),
	protocol.Exactly(protocol.LowLoad, protocol.Messages, protocol.Linear(1, 0), "N").PublishedAs("0 or N"),
	protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(2), "2").PublishedAs("0 or 2"),
	protocol.Between(protocol.HighLoad, protocol.Messages, protocol.Linear(1, -0.2), protocol.Linear(1, 0), "N").PublishedAs("0 or N"),
	protocol.Between(protocol.HighLoad, protocol.SyncDelay, protocol.Fixed(0.9), protocol.Fixed(1), "1"),
}

// Process is one participant. The names are those of Suzuki and Kasami.
type Process struct {
	id   protocol.ID
	n    int
	ring bool // the form of Ricart and Agrawala, whose queue is always empty

	section protocol.Section // InRem, InTry or InCrit; in InTry it has no token
	rn      []uint64         // RN[j]: the largest number received from j; of id itself, of its last request
	token   bool             // it holds the token, whose parts are
	ln      []uint64         // LN[j]: the number of j's request served last; without the token, nothing
	queue   []uint64         // Q: who gets the token next; empty unless inside
	fence   uint64           // how many entries there were: the fencing token of the last one
	queued  protocol.Set     // memory of enqueue
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
		switch ev.Msg.Kind {
		case Request:
			p.onRequest(ev.From, ev.Msg.Number, out)
		case Token:
			p.onToken(ev.Msg, out)
		}
	default:
		panic("suzukikasami: unexpected event")
	}
}

// try enters at once with the token, and else asks everybody for it.
func (p *Process) try(out *protocol.Out[Message]) {
	if p.token {
		p.enter(out)
		return
	}
	p.section = protocol.InTry
	p.rn[p.id]++
	out.Broadcast(Message{Kind: Request, Number: p.rn[p.id]})
}

// onToken takes over the token, whose memory belongs to the message, and enters.
func (p *Process) onToken(t Message, out *protocol.Out[Message]) {
	if p.section != protocol.InTry || len(t.LN) != p.n {
		panic("suzukikasami: a TOKEN that nobody waits for")
	}
	p.token = true
	p.fence = t.Fence
	copy(p.ln, t.LN)
	p.queue = append(p.queue, t.Q...)
	p.enter(out)
}

func (p *Process) enter(out *protocol.Out[Message]) {
	p.section = protocol.InCrit
	p.fence++
	out.Crit(p.fence)
}

// exit records that the own request is served, and passes the token on to who is next.
func (p *Process) exit(out *protocol.Out[Message]) {
	p.section = protocol.InRem
	out.Rem()
	p.ln[p.id] = p.rn[p.id]
	if p.ring {
		p.passAround(out)
		return
	}
	p.enqueue()
	if len(p.queue) > 0 {
		next := protocol.ID(p.queue[0])
		p.queue = append(p.queue[:0], p.queue[1:]...)
		p.pass(next, out)
	}
}

// enqueue puts every process with an open request behind those already queued. The scan
// begins after the process itself: from a fixed place, small ids would be favoured.
func (p *Process) enqueue() {
	p.queued.Clear()
	for _, j := range p.queue {
		p.queued.Add(protocol.ID(j))
	}
	for k := 1; k < p.n; k++ {
		j := p.after(k)
		if p.open(j) && !p.queued.Has(j) {
			p.queue = append(p.queue, uint64(j))
		}
	}
}

// passAround gives the token to the next process of the ring with an open request.
func (p *Process) passAround(out *protocol.Out[Message]) {
	for k := 1; k < p.n; k++ {
		if j := p.after(k); p.open(j) {
			p.pass(j, out)
			return
		}
	}
}

// after is the process k places after this one in the ring of all.
func (p *Process) after(k int) protocol.ID {
	return (p.id + protocol.ID(k)) % protocol.ID(p.n)
}

// onRequest remembers the newest number only, because requests may overtake one
// another. An idle token answers it at once; a token in use does so on exit.
func (p *Process) onRequest(j protocol.ID, number uint64, out *protocol.Out[Message]) {
	p.rn[j] = max(p.rn[j], number)
	if p.token && p.section == protocol.InRem && p.open(j) {
		p.pass(j, out)
	}
}

// open says that the newest request known of j is not served yet. It needs the
// token. An old number is not an open request: it is at most LN[j].
func (p *Process) open(j protocol.ID) bool { return p.rn[j] == p.ln[j]+1 }

// pass sends the token away and forgets it.
func (p *Process) pass(to protocol.ID, out *protocol.Out[Message]) {
	t := out.Words(p.n + len(p.queue))
	copy(t, p.ln)
	copy(t[p.n:], p.queue)
	out.Send(to, Message{Kind: Token, LN: t[:p.n], Q: t[p.n:], Fence: p.fence})
	p.token = false
	p.fence = 0
	p.queue = p.queue[:0]
}

// confluent: the token lets its receiver in, and requests that come before it are only
// remembered, as those are that come to who has no token and tries no more.
func confluent(q protocol.Process[Message], _ protocol.ID, m Message, again bool) bool {
	p := q.(*Process)
	return m.Kind == Token || !again && p.section == protocol.InRem && !p.token
}
