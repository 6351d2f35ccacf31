package ringelection

import (
	"errors"
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Message.
const (
	Election uint8 = iota
	Coordinator
	Recovered
)

var messages = []protocol.Message{
	Election: {Name: "ELECTION"}, Coordinator: {Name: "COORDINATOR"}, Recovered: {Name: "RECOVERED"},
}

// A Message is ELECTION(epoch, ids), COORDINATOR(epoch) or RECOVERED.
type Message struct {
	Kind  uint8
	Epoch protocol.Epoch // of an ELECTION: the one that is to end
	IDs   []uint64       // of an ELECTION: who takes part, its initiator first; frozen once sent
}

// Algorithm is the only form.
var Algorithm = protocol.Algorithm[Message]{
	Info: protocol.Info{
		Name:      "ring-election",
		Title:     "ids are collected around a ring, and the highest one is announced around it",
		Source:    "Frederickson, Lynch: Electing a Leader in a Synchronous Ring, JACM 1987",
		Family:    protocol.Election,
		Users:     protocol.Nobody,
		Detector:  protocol.UnreliableDetector,
		Tolerates: protocol.Crash | protocol.Recovery,
		Messages:  messages,
	},
	New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
		return &Process{
			id: id, n: c.N, list: make([]uint64, 0, c.N), suspected: protocol.NewSet(c.N),
		}
	},
	Fields: Message.fields,
	KindOf: func(m Message) int { return int(m.Kind) },
	Ints:   ints,
	Text:   text,
	Model: protocol.Model[Message]{
		Bounds:     []protocol.Bound{protocol.NewBound("rounds", 12, func(p *Process) uint64 { return p.epoch.Round })},
		Invariants: []protocol.Invariant{{Name: "ring-election/list", Err: once}},
	},
}

// Process is one participant. Its successor is the next process on the ring that it does
// not suspect.
type Process struct {
	id protocol.ID
	n  int

	epoch     protocol.Epoch // the newest it has heard of; the zero one after a recovery
	list      []uint64       // the ELECTION that it takes part in, as handed on, to end epoch; empty: none
	suspected protocol.Set   // by the detector
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
		p.start(ev.Arg, out)
	case protocol.Suspect:
		p.suspect(ev.From, out)
	case protocol.Restore:
		p.restore(ev.From, out)
	case protocol.Receive:
		switch m := ev.Msg; {
		case m.Epoch.Leader >= protocol.ID(p.n) || len(m.IDs) > p.n || len(m.IDs) > 0 && slices.Max(m.IDs) >= uint64(p.n):
			panic("ringelection: a message about nobody")
		case m.Kind == Election:
			p.onElection(ev.From, m, out)
		case m.Kind == Coordinator:
			p.onCoordinator(ev.From, m.Epoch, out)
		default:
			p.onRecovered(ev.From, out)
		}
	default:
		panic("ringelection: unexpected event")
	}
}

// start: a first life knows that the highest id leads. A later one knows nothing, and what
// its former life was handed and did not hand on is lost: it tells all, since it does not
// know whose successor it is.
func (p *Process) start(incarnation uint64, out *protocol.Out[Message]) {
	if incarnation <= 1 {
		p.follow(protocol.Epoch{Round: 1, Leader: protocol.ID(p.n - 1)}, out)
		return
	}
	out.Broadcast(Message{Kind: Recovered})
	if p.n == 1 {
		p.elect(out)
	}
}

// elect begins an election, with the own id.
func (p *Process) elect(out *protocol.Out[Message]) {
	p.list = append(p.list[:0], uint64(p.id))
	p.tell(out)
}

// tell hands the successor what it is to know: the ELECTION that this process takes part
// in, or who leads. It does so again whenever the successor is another one, or has lost its
// memory, so that nothing is lost with who crashes. A process that has no leader to tell of elects.
func (p *Process) tell(out *protocol.Out[Message]) {
	next, taking := p.successor(), len(p.list) > 0
	switch {
	case !taking && !p.settled():
		p.elect(out)
	case taking && next == p.id: // nobody else is left
		p.announce(p.list, out)
	case taking:
		ids := out.Words(len(p.list))
		copy(ids, p.list)
		out.Send(next, Message{Election, p.epoch, ids})
	case next != p.id:
		out.Send(next, Message{Kind: Coordinator, Epoch: p.epoch})
	}
}

// onElection adds the own id and hands the list on. A process takes part in one election at
// a time, of those to end one epoch in that of the highest initiator: others end here. What
// comes a second time, by a way that was believed to be interrupted, goes on: the first copy
// may wait for it to do so.
//
// An ELECTION gets one id longer with each hop. So it ends within n hops, at who finds its
// own id: its initiator, or the first one after it if that is suspected, who announces in
// its place.
func (p *Process) onElection(from protocol.ID, m Message, out *protocol.Out[Message]) {
	if m.Epoch.Before(p.epoch) {
		p.inform(from, out)
		return
	}
	if p.epoch.Before(m.Epoch) {
		p.learn(m.Epoch, out)
	}
	switch taking := len(p.list) > 0; {
	case taking && p.list[0] > m.IDs[0]:
	case slices.Contains(m.IDs, uint64(p.id)):
		p.announce(m.IDs, out)
	default:
		p.list = append(append(p.list[:0], m.IDs...), uint64(p.id))
		p.tell(out)
	}
}

// announce begins an epoch, which the highest id leads.
func (p *Process) announce(ids []uint64, out *protocol.Out[Message]) {
	p.follow(protocol.Epoch{Round: max(p.epoch.Round, 1) + 1, Leader: protocol.ID(slices.Max(ids))}, out)
	p.tell(out)
}

// onCoordinator hands the news on. It ends at who knows it.
func (p *Process) onCoordinator(from protocol.ID, e protocol.Epoch, out *protocol.Out[Message]) {
	switch {
	case e.Before(p.epoch):
		p.inform(from, out)
	case !p.epoch.Before(e):
	case p.learn(e, out):
		p.tell(out)
	default:
		p.elect(out)
	}
}

// inform tells who is behind.
func (p *Process) inform(to protocol.ID, out *protocol.Out[Message]) {
	out.Send(to, Message{Kind: Coordinator, Epoch: p.epoch})
}

// onRecovered: what the former life of the successor was told is lost.
func (p *Process) onRecovered(from protocol.ID, out *protocol.Out[Message]) {
	if p.successor() == from {
		p.tell(out)
	}
}

// suspect elects if it is the leader, and else makes up for what was lost with a successor.
func (p *Process) suspect(j protocol.ID, out *protocol.Out[Message]) {
	if p.suspects(j) {
		return // it lasts
	}
	before := p.successor()
	p.suspected.Add(j)
	switch {
	case len(p.list) == 0 && p.epoch.Leader == j:
		p.elect(out)
	case before == j:
		p.tell(out)
	}
}

// restore: a process that was suspected may not have been told who leads.
func (p *Process) restore(j protocol.ID, out *protocol.Out[Message]) {
	before := p.successor()
	p.suspected.Remove(j)
	if p.successor() != before {
		p.tell(out)
	}
}

// follow takes an epoch over, and with it leaves the election that was to end the one
// before.
func (p *Process) follow(e protocol.Epoch, out *protocol.Out[Message]) {
	p.epoch, p.list = e, p.list[:0]
	out.Leader(e.Leader, e.Number(p.n))
}

// learn takes a newer epoch over, and reports whether it has a leader. If this process led
// it in a former life, as far as it can know, nobody leads it now.
func (p *Process) learn(e protocol.Epoch, out *protocol.Out[Message]) bool {
	if p.epoch == (protocol.Epoch{}) && e.Leader == p.id {
		p.epoch, p.list = e, p.list[:0]
		return false
	}
	p.follow(e, out)
	return true
}

// settled: there is a leader, which is not a lower process, and none that the ELECTIONs of this one skip.
// It is for this process to notice the crash of whom it skips; others may have suspected it
// by mistake, and forgotten.
func (p *Process) settled() bool {
	if p.epoch == (protocol.Epoch{}) || p.epoch.Leader < p.id {
		return false
	}
	for j := p.after(p.id); j != p.successor(); j = p.after(j) {
		if j == p.epoch.Leader {
			return false
		}
	}
	return true
}

// successor is the next process that is not suspected, or the own id if all others are.
func (p *Process) successor() protocol.ID { return p.suspected.After(p.id, p.n) }

func (p *Process) after(j protocol.ID) protocol.ID { return (j + 1) % protocol.ID(p.n) }

func (p *Process) suspects(j protocol.ID) bool { return p.suspected.Has(j) }

// once is the invariant behind the end of each ELECTION: no id stands in one twice.
func once(v *protocol.View) error {
	for _, m := range protocol.InFlight[Message](v) {
		ids := slices.Sorted(slices.Values(m.IDs))
		if len(slices.Compact(ids)) != len(m.IDs) {
			return fmt.Errorf("ringelection: %s goes on beyond who has seen it", text(m))
		}
		if m.Kind == Election && len(m.IDs) == 0 {
			return errors.New("ringelection: an ELECTION of nobody")
		}
	}
	return nil
}
