package centralised

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// Coordinators come and go by an election: see Successor. The kinds of Told beyond those of
// Message say where a process stands when an epoch begins.
const (
	Idle    = Denied + iota // in its remainder section
	Waiting                 // it tries
	Inside                  // in its critical section
)

var toldMessages = []protocol.Message{
	Enter: {Name: "ENTER"}, Granted: {Name: "GRANTED"}, Released: {Name: "RELEASED"},
	Idle: {Name: "IDLE"}, Waiting: {Name: "WAITING"}, Inside: {Name: "INSIDE"},
}

// Told is a message of Successor.
type Told struct {
	Kind  uint8
	Epoch uint64 // of the coordinator that sends it, or is to receive it
}

// Successor is the form whose coordinator may crash: the leader of an election takes its
// place. It runs with that election beside it, by package withleader.
var Successor = protocol.Algorithm[Told]{
	Info: protocol.Info{
		Name:      "centralised",
		Variant:   "successor",
		Title:     "the same with an elected coordinator, and another one when it crashes",
		Source:    "folklore; Garcia-Molina: Elections in a Distributed Computing System, IEEE Trans. Computers 1982",
		Family:    protocol.Permission,
		Users:     protocol.Members,
		Detector:  protocol.PerfectDetector,
		Elector:   true,
		Tolerates: protocol.Crash,
		Messages:  toldMessages,
		Claims:    claims(false),
	},
	New: func(id protocol.ID, c protocol.Config) protocol.Process[Told] {
		return &Heir{id: id, n: c.N, suspected: protocol.NewSet(c.N), heard: protocol.NewSet(c.N)}
	},
	Fields: Told.fields,
	KindOf: func(m Told) int { return int(m.Kind) },
	Ints:   func(Told) int { return 1 },
	Text:   toldText,
}

// Heir is one participant, which may come to coordinate.
type Heir struct {
	id protocol.ID
	n  int

	section   protocol.Section // InRem, InTry or InCrit
	epoch     uint64           // the newest it has heard of, 0 before the first one
	leader    protocol.ID      // the coordinator of that epoch
	suspected protocol.Set     // who has crashed

	// The rest is the coordinator's, and empty elsewhere.
	heard  protocol.Set // who has said where it stands in this epoch
	taken  bool         // somebody may be inside
	holder protocol.ID  // who that is; 0 where nobody is
	waits  []uint64     // who waits, in the order of arrival
}

// Step implements protocol.Process.
func (p *Heir) Step(ev protocol.Event[Told], out *protocol.Out[Told]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.section = protocol.InTry
		p.tell(Enter, out)
	case protocol.Exit:
		p.section = protocol.InRem
		out.Rem()
		p.tell(Released, out)
	case protocol.Lead:
		p.lead(ev.From, ev.Arg, out)
	case protocol.Suspect:
		p.bury(ev.From, out)
	case protocol.Receive:
		p.receive(ev.From, ev.Msg, out)
	default:
		panic("centralised: unexpected event")
	}
}

// lead begins an epoch. Each process tells the new coordinator where it stands, which is
// also a new ENTER of who tries. Nobody can be inside when the first epoch begins.
func (p *Heir) lead(leader protocol.ID, epoch uint64, out *protocol.Out[Told]) {
	if epoch <= p.epoch {
		return // the others were faster to say so
	}
	first := p.epoch == 0
	p.epoch, p.leader = epoch, leader
	p.taken, p.holder, p.waits = false, 0, p.waits[:0]
	p.heard.Clear()
	if !first {
		p.tell(Idle+uint8(p.section-protocol.InRem), out)
		return
	}
	for j := range protocol.ID(p.n) {
		p.heard.Add(j)
	}
}

// tell takes something to the coordinator. It is lost with one that has crashed: then the
// next one is told where the process stands.
func (p *Heir) tell(kind uint8, out *protocol.Out[Told]) {
	if p.leader == p.id {
		p.serve(kind, p.id, out)
		return
	}
	out.Send(p.leader, Told{kind, p.epoch})
}

// receive drops what is of an older epoch, such as a GRANTED of who does not coordinate any
// more: its receiver may have said that it was not inside. A newer epoch than the own one
// can only be of this process itself, which is the last to hear of it.
func (p *Heir) receive(from protocol.ID, m Told, out *protocol.Out[Told]) {
	switch {
	case m.Epoch < p.epoch || p.suspects(from):
		return
	case m.Kind == Granted && m.Epoch == p.epoch && from == p.leader:
		p.enter(out)
		return
	case m.Kind == Granted:
		panic("centralised: GRANTED by who does not coordinate")
	case m.Epoch > p.epoch:
		p.lead(p.id, m.Epoch, out)
	case p.leader != p.id:
		panic("centralised: told to who does not coordinate")
	}
	p.serve(m.Kind, from, out)
}

func (p *Heir) enter(out *protocol.Out[Told]) {
	if p.section != protocol.InTry {
		panic("centralised: GRANTED to who does not wait")
	}
	p.section = protocol.InCrit
	out.Crit(0)
}

// serve is the coordinator. Messages overtake each other: what a process told first it may
// be the last to hear, and ENTER of who is inside comes before its RELEASED.
func (p *Heir) serve(kind uint8, from protocol.ID, out *protocol.Out[Told]) {
	news := !p.heard.Has(from)
	switch kind {
	case Enter:
		p.waits = append(p.waits, uint64(from))
	case Idle, Waiting, Inside:
		if kind == Waiting {
			p.waits = append(p.waits, uint64(from))
		}
		if news && kind == Inside {
			p.taken, p.holder = true, from
		}
		p.heard.Add(from)
	case Released:
		switch {
		case news: // its INSIDE comes later, and is old then
			p.heard.Add(from)
		case p.taken && p.holder == from:
			p.taken, p.holder = false, 0
		default:
			panic("centralised: RELEASED by who is not inside")
		}
	}
	p.grant(out)
}

// grant lets in who has waited longest, once every live process has said where it stands.
func (p *Heir) grant(out *protocol.Out[Told]) {
	if p.taken || len(p.waits) == 0 {
		return
	}
	for j := range protocol.ID(p.n) {
		if !p.heard.Has(j) && !p.suspects(j) {
			return
		}
	}
	to := protocol.ID(p.waits[0])
	p.waits = append(p.waits[:0], p.waits[1:]...)
	p.taken, p.holder = true, to
	if to == p.id {
		p.enter(out)
		return
	}
	out.Send(to, Told{Granted, p.epoch})
}

// bury forgets who has crashed: it is not inside any more, and waits no more.
func (p *Heir) bury(j protocol.ID, out *protocol.Out[Told]) {
	p.suspected.Add(j)
	if p.holder == j {
		p.taken, p.holder = false, 0
	}
	p.waits = slices.DeleteFunc(p.waits, func(w uint64) bool { return w == uint64(j) })
	p.grant(out)
}

func (p *Heir) suspects(j protocol.ID) bool { return p.suspected.Has(j) }
