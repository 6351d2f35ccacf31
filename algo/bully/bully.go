package bully

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Message.
const (
	Election uint8 = iota
	OK
	Coordinator
)

var messages = []protocol.Message{Election: {Name: "ELECTION"}, OK: {Name: "OK"}, Coordinator: {Name: "COORDINATOR"}}

// A Message carries the newest epoch that its sender has heard of.
type Message struct {
	Kind  uint8
	Epoch protocol.Epoch
}

// Algorithm is the only form.
var Algorithm = protocol.Algorithm[Message]{
	Info: protocol.Info{
		Name:        "bully",
		Title:       "the live process with the highest id bullies its way to the lead",
		Source:      "Garcia-Molina: Elections in a Distributed Computing System, IEEE Trans. Computers 1982",
		Family:      protocol.Election,
		Users:       protocol.Nobody,
		Detector:    protocol.UnreliableDetector,
		Tolerates:   protocol.Crash | protocol.Recovery,
		Synchronous: true,
		Messages:    messages,
		Options:     []protocol.Option{timeout},
	},
	New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
		i := protocol.Info{Options: []protocol.Option{timeout}}
		return &Process{id: id, n: c.N, timeout: i.Option(c, timeout.Name), suspected: protocol.NewSet(c.N)}
	},
	Fields: Message.fields,
	KindOf: func(m Message) int { return int(m.Kind) },
	Ints:   func(Message) int { return 2 },
	Text:   text,
	Model: protocol.Model[Message]{
		Bounds:     []protocol.Bound{protocol.NewBound("rounds", 5, func(p *Process) uint64 { return p.epoch.Round })},
		Invariants: []protocol.Invariant{{Name: "bully/follows", Err: follows}},
	},
}

// timeout is the synchronous bound. A process that has an OK waits for COORDINATOR twice as long: its
// own ELECTION has reached the highest live process by then, which hears nothing for one
// time-out and announces itself.
var timeout = protocol.Option{
	Name:    "timeout",
	Default: func(protocol.Config) int64 { return 100e6 },
	Range:   func(protocol.Config) (least, most int64) { return 1, 3600e9 },
	Doc: "ns: who has no OK by then leads. More than the longest round trip, with what both ends take; " +
		"with less there may be two leaders for a while (default 100ms)",
}

// The timer of a process.
const timer = 0

// A phase says what a process waits for.
type phase uint8

const (
	idle    phase = iota // nothing: it knows a leader that it does not suspect
	asking               // an OK; when the time is over it leads
	waiting              // COORDINATOR; when the time is over it asks again, unless the detector trusts who said OK
)

// Process is one participant.
type Process struct {
	id      protocol.ID
	n       int
	timeout int64

	epoch     protocol.Epoch // the newest it has heard of; the zero one after a recovery
	announced bool           // its leader has said so in this life
	phase     phase
	trusted   protocol.ID  // while waiting: who said OK, or the leader that is suspected; else 0
	suspected protocol.Set // by the detector
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
		p.start(ev.Arg, out)
	case protocol.Suspect:
		p.suspected.Add(ev.From)
	case protocol.Restore:
		p.restore(ev.From, out)
	case protocol.Receive:
		if ev.Msg.Epoch.Leader >= protocol.ID(p.n) {
			panic("bully: an epoch that nobody leads")
		}
		switch ev.Msg.Kind {
		case Election:
			p.onElection(ev.From, ev.Msg.Epoch, out)
		case OK:
			p.onOK(ev.From, ev.Msg.Epoch, out)
		case Coordinator:
			p.onCoordinator(ev.From, ev.Msg.Epoch, out)
		}
	case protocol.Timeout:
		p.onTimeout(ev.Timer, out)
	default:
		panic("bully: unexpected event")
	}
	if p.phase == idle && !p.settled() {
		p.elect(out)
	}
}

// start: a first life knows that the highest id leads, a later one knows nothing.
func (p *Process) start(incarnation uint64, out *protocol.Out[Message]) {
	if incarnation <= 1 {
		p.epoch = protocol.Epoch{Round: 1, Leader: protocol.ID(p.n - 1)}
		p.announce(out)
	}
}

// elect asks all processes with higher ids. One that has recovered asks the lower ones too:
// if none is higher, its epoch must still exceed all that it has forgotten.
func (p *Process) elect(out *protocol.Out[Message]) {
	first := p.id + 1
	if p.epoch == (protocol.Epoch{}) {
		first = 0
	}
	asked := false
	for j := first; j < protocol.ID(p.n); j++ {
		if j != p.id {
			asked = true
			p.send(j, Election, out)
		}
	}
	if !asked {
		p.lead(out)
		return
	}
	p.phase, p.trusted = asking, 0
	out.SetTimer(timer, p.timeout, 0)
}

// onElection answers, which keeps a lower process from leading, and takes over. A leader
// has nothing to take over: it only says again that it leads, unless that is news no more.
func (p *Process) onElection(from protocol.ID, e protocol.Epoch, out *protocol.Out[Message]) {
	p.learn(e)
	p.send(from, OK, out)
	switch {
	case from > p.id:
	case p.leads():
		p.send(from, Coordinator, out)
	case p.phase == idle:
		p.elect(out)
	}
}

// onOK leaves the election to a higher process. A lower one answers who has recovered.
func (p *Process) onOK(from protocol.ID, e protocol.Epoch, out *protocol.Out[Message]) {
	p.learn(e)
	if from > p.id && p.phase != idle {
		p.wait(from, out)
	}
}

// onCoordinator follows a leader, but a lower one, which it bullies, and one of an older
// epoch. Who leads and did not know of a newer one hears of it by an ELECTION.
func (p *Process) onCoordinator(from protocol.ID, e protocol.Epoch, out *protocol.Out[Message]) {
	switch {
	case e.Before(p.epoch):
		if from > p.id {
			p.send(from, Election, out)
		}
	case from < p.id:
		p.learn(e)
	default:
		p.learn(e)
		if !p.announced {
			p.announce(out)
		}
		if p.suspects(from) { // it may be wrong, or it has crashed since
			p.wait(from, out)
		} else {
			p.rest(out)
		}
	}
}

func (p *Process) onTimeout(t uint32, out *protocol.Out[Message]) {
	switch {
	case t != timer || p.phase == idle:
		panic("bully: unexpected timer")
	case p.phase == asking:
		p.lead(out)
	case p.settled():
		p.rest(out)
	case p.suspects(p.trusted):
		p.elect(out)
	default:
		p.wait(p.trusted, out)
	}
}

// lead begins an epoch that exceeds all others known, and tells the lower processes. Of
// the higher ones none has answered.
func (p *Process) lead(out *protocol.Out[Message]) {
	p.phase, p.trusted = idle, 0
	p.epoch = protocol.Epoch{Round: max(p.epoch.Round, 1) + 1, Leader: p.id}
	p.announce(out)
	for j := range p.id {
		if !p.suspects(j) {
			p.send(j, Coordinator, out)
		}
	}
}

// restore: a process that was suspected may not have been told who leads.
func (p *Process) restore(j protocol.ID, out *protocol.Out[Message]) {
	p.suspected.Remove(j)
	if p.leads() {
		p.send(j, Coordinator, out)
	}
}

// learn remembers a newer epoch, whose leader has not told of it yet.
func (p *Process) learn(e protocol.Epoch) {
	if p.epoch.Before(e) {
		p.epoch, p.announced = e, false
	}
}

func (p *Process) announce(out *protocol.Out[Message]) {
	p.announced = true
	out.Leader(p.epoch.Leader, p.epoch.Number(p.n))
}

// leads: in this life, for nobody announces to itself what a former life did.
func (p *Process) leads() bool { return p.announced && p.epoch.Leader == p.id }

// wait: j is to lead, or to announce who does.
func (p *Process) wait(j protocol.ID, out *protocol.Out[Message]) {
	p.phase, p.trusted = waiting, j
	out.SetTimer(timer, 2*p.timeout, 0)
}

func (p *Process) rest(out *protocol.Out[Message]) {
	out.StopTimer(timer)
	p.phase, p.trusted = idle, 0
}

// settled: a leader that is suspected, or that this process has only heard of, is none.
func (p *Process) settled() bool { return p.announced && !p.suspects(p.epoch.Leader) }

func (p *Process) suspects(j protocol.ID) bool { return p.suspected.Has(j) }

func (p *Process) send(to protocol.ID, kind uint8, out *protocol.Out[Message]) {
	out.Send(to, Message{kind, p.epoch})
}

// follows is the invariant behind agreement: a process that waits for nothing follows a leader that it
// does not suspect, and that has no lower id.
func follows(v *protocol.View) error {
	for id, p := range protocol.Procs[*Process](v) {
		if p.phase == idle && (!p.settled() || p.epoch.Leader < p.id) {
			return fmt.Errorf("bully: #%d waits for nothing, and has no leader to follow", id)
		}
	}
	return nil
}
