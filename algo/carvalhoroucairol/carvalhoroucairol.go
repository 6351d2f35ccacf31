package carvalhoroucairol

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Message.
const (
	Request uint8 = iota
	Reply
)

var messages = []protocol.Message{Request: {Name: "REQUEST"}, Reply: {Name: "REPLY"}}

// A Message is REQUEST(timestamp) or REPLY.
type Message struct {
	Kind uint8
	Time uint64 // of a REQUEST, counted from 1
}

// Algorithm is the only form.
var Algorithm = protocol.Algorithm[Message]{
	Info: protocol.Info{
		Name:     "carvalho-roucairol",
		Title:    "permission from everybody who has asked since",
		Source:   "Carvalho, Roucairol: On Mutual Exclusion in Computer Networks, CACM 1983",
		Family:   protocol.Permission,
		Users:    protocol.Members,
		Messages: messages,
		Claims:   claims,
	},
	New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
		return &Process{id: id, n: c.N, permits: protocol.NewSet(c.N), deferred: protocol.NewSet(c.N)}
	},
	Fields: Message.fields,
	KindOf: func(m Message) int { return int(m.Kind) },
	Ints:   ints,
	Text:   text,
	Model: protocol.Model[Message]{
		MapState: protocol.MapState[Message],
		MapMsg:   protocol.MapMsg(Message.fields),
		// Two processes that enter in turn leave behind the clock of a third, which neither
		// of them needs to ask again.
		Bounds:     []protocol.Bound{protocol.NewBound("clock", 6, func(p *Process) uint64 { return p.clock })},
		Invariants: []protocol.Invariant{{Name: "carvalho-roucairol/permission", Err: onePermission}},
	},
}

// claims: where the processes come in turn each of them has been asked by all others since
// it left, and an entry costs what it does in the algorithm of Ricart and Agrawala. So it
// does under load. A process that comes back before anybody else pays nothing: see TestKeeper.
var claims = []protocol.Claim{
	protocol.Exactly(protocol.LowLoad, protocol.ToEnter, protocol.Linear(2, -2), inTurn).PublishedAs("0 to 2(N-1)"),
	protocol.Exactly(protocol.LowLoad, protocol.Messages, protocol.Linear(2, -2), inTurn).PublishedAs("0 to 2(N-1)"),
	protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(2), "2 in turn, 0 again at once").PublishedAs("0 or 2"),
	protocol.Exactly(protocol.HighLoad, protocol.Messages, protocol.Linear(2, -2), "2(N-1)").PublishedAs("0 to 2(N-1)"),
	protocol.Exactly(protocol.HighLoad, protocol.SyncDelay, protocol.Fixed(1), "1"),
}

const inTurn = "2(N-1) in turn, 0 again at once"

// Process is one participant. It waits while request is not 0; then a REQUEST of its is
// with everybody who is not in permits, and is answered once.
type Process struct {
	id protocol.ID
	n  int

	clock    uint64 // the largest timestamp seen or used
	request  uint64 // timestamp of the current request, 0 unless it waits
	inside   bool
	permits  protocol.Set // who has given permission, and has not taken it back since by a REQUEST
	deferred protocol.Set // who gets a REPLY on exit; empty in the remainder
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
			p.onRequest(ev.From, ev.Msg.Time, out)
		case Reply:
			p.onReply(ev.From, out)
		}
	default:
		panic("carvalhoroucairol: unexpected event")
	}
}

// try asks those whose permission it does not have. A process that has all of them enters, and needs
// no timestamp: whatever comes is deferred.
func (p *Process) try(out *protocol.Out[Message]) {
	if p.permitted() {
		p.enter(out)
		return
	}
	p.clock++
	p.request = p.clock
	for j := range protocol.ID(p.n) {
		if j != p.id && !p.permits.Has(j) {
			out.Send(j, Message{Request, p.request})
		}
	}
}

// onRequest defers the reply while inside, and while waiting with an earlier request than
// (t, from). Else it gives the permission back, and asks for it again if it needs it.
func (p *Process) onRequest(from protocol.ID, t uint64, out *protocol.Out[Message]) {
	p.clock = max(p.clock, t)
	waits := p.request != 0
	first := protocol.Stamp{Time: p.request, ID: p.id}.Before(protocol.Stamp{Time: t, ID: from})
	if p.inside || waits && first {
		p.deferred.Add(from)
		return
	}
	again := waits && p.permits.Has(from)
	p.reply(from, out)
	if again {
		out.Send(from, Message{Request, p.request})
	}
}

func (p *Process) onReply(from protocol.ID, out *protocol.Out[Message]) {
	if p.request == 0 || p.permits.Has(from) {
		panic("carvalhoroucairol: a REPLY that nobody waits for")
	}
	p.permits.Add(from)
	if p.permitted() {
		p.enter(out)
	}
}

func (p *Process) enter(out *protocol.Out[Message]) {
	p.request, p.inside = 0, true
	out.Crit(0)
}

// exit answers everybody whose reply was deferred, and keeps the permission of the others.
func (p *Process) exit(out *protocol.Out[Message]) {
	p.inside = false
	out.Rem()
	for j := range p.deferred.All() {
		p.reply(j, out)
	}
	p.deferred.Clear()
}

// reply gives permission, and thereby loses that of the other one.
func (p *Process) reply(to protocol.ID, out *protocol.Out[Message]) {
	p.permits.Remove(to)
	out.Send(to, Message{Kind: Reply})
}

// permitted says that nobody's permission is missing.
func (p *Process) permitted() bool { return p.permits.Len() == p.n-1 }

// onePermission is the invariant behind mutual exclusion: of two processes one may have the
// permission of the other, or it is on its way.
func onePermission(v *protocol.View) error {
	type pair struct{ a, b protocol.ID }
	count := map[pair]int{}
	for ch, m := range protocol.InFlight[Message](v) {
		if m.Kind == Reply {
			count[pair{min(ch.From, ch.To), max(ch.From, ch.To)}]++
		}
	}
	for id, p := range protocol.Procs[*Process](v) {
		for j := range p.permits.All() {
			count[pair{min(id, j), max(id, j)}]++
		}
	}
	for b := range protocol.ID(v.Config.N) {
		for a := range b {
			if n := count[pair{a, b}]; n > 1 {
				return fmt.Errorf("carvalhoroucairol: %d permissions between #%d and #%d", n, a, b)
			}
		}
	}
	return nil
}
