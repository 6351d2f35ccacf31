package statemachine

import (
	"cmp"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Message.
const (
	Request  uint8 = iota // a command, for whoever coordinates
	Prepare               // the owner of a ballot asks what was accepted, from a place on
	Promise               // what was accepted from there on; the sender accepts nothing of earlier ballots any more
	Propose               // a command for a place
	Accepted              // the sender has accepted it
	Decided               // a majority has
)

var messages = []protocol.Message{
	Request: {Name: "REQUEST"}, Prepare: {Name: "PREPARE"}, Promise: {Name: "PROMISE"},
	Propose: {Name: "PROPOSE"}, Accepted: {Name: "ACCEPTED"}, Decided: {Name: "DECIDED"},
}

// What commands do.
const (
	Nothing uint8 = iota // it fills a place of which nobody knows anything
	Enter                // a section of Who waits for its turn
	Invoke               // operation Op, of this section
	Exit                 // the section ends
	Eject                // the section ends, for its user is suspected
	commands
)

// A Command is what processes agree on.
type Command struct {
	Do      uint8
	Who     protocol.ID // whose section it is about
	ID      uint64      // which command of its user it is; 0 for Eject
	Section uint64      // ID of the Enter that the section began with
	Op      string
}

// A Message carries what its kind needs.
type Message struct {
	Kind    uint8
	Ballot  uint64
	Place   uint64 // of the command; of PREPARE and PROMISE: the first one
	Command Command
	Log     []Entry // of PROMISE, from Place on; frozen
}

// An Entry is what a process knows of a place.
type Entry struct {
	Ballot  uint64 // in which Command was accepted; 0: nothing was
	Decided bool
	Command Command
}

// Algorithm is the form in which all processes tell all what they accept. Announced is the one in
// which they tell the coordinator, which tells all what is decided.
var (
	Algorithm = form("", "a replicated lock and object, each command by consensus", true)
	Announced = form("announced", "the same, with decisions that the coordinator announces", false)
)

func form(variant, title string, toAll bool) protocol.Algorithm[Message] {
	return protocol.Algorithm[Message]{
		Info: protocol.Info{
			Name:    "state-machine",
			Variant: variant,
			Title:   title,
			Source: "Schneider: Implementing Fault-Tolerant Services Using the State Machine Approach, Computing Surveys 1990; " +
				"Lamport: The Part-Time Parliament, TOCS 1998",
			Family:    protocol.Quorum,
			Users:     protocol.Members,
			Weak:      true,
			Detector:  protocol.UnreliableDetector,
			Tolerates: protocol.Crash,
			Majority:  true,
			Messages:  messages,
			Claims:    claims(toAll),
		},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
			return &Process{
				id: id, n: c.N, toAll: toAll, ballot: 1, leading: id == owner(1, c.N),
				last: make([]uint64, c.N), ended: make([]uint64, c.N),
				promised: protocol.NewSet(c.N), suspected: protocol.NewSet(c.N),
			}
		},
		Fields: Message.fields,
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints:   ints,
		Text:   text,
	}
}

// claims are means over the processes. An entry is two commands, and one of the coordinator needs no request, which is N-1 messages.
// Where a process and the coordinator are a majority, it does not wait for others.
func claims(toAll bool) []protocol.Claim {
	sent, waits := "8(N-1), the coordinator 6(N-1)", "4, the coordinator 2"
	if toAll {
		sent, waits = "2(N-1)(N+2), the coordinator 2(N-1)(N+1)", "3, or 2 where N <= 3; the coordinator 2"
	}
	messages := func(c protocol.Config) float64 {
		n, command := float64(c.N), 4.0
		if toAll {
			command = n + 2
		}
		return 2 * (n - 1) * (n*command - 1) / n
	}
	delays := func(c protocol.Config) float64 {
		n, each := float64(c.N), 4.0
		switch {
		case toAll && c.N <= 3:
			each = 2
		case toAll:
			each = 3
		}
		return ((n-1)*each + 2) / n
	}
	return []protocol.Claim{
		protocol.Exactly(protocol.LowLoad, protocol.Messages, messages, sent),
		protocol.Exactly(protocol.LowLoad, protocol.Waiting, delays, waits),
	}
}

// owner is the coordinator of a ballot: the first one is process 0's.
func owner(ballot uint64, n int) protocol.ID { return protocol.ID((ballot - 1) % uint64(n)) }

// Process is one participant: a user, a copy of the lock and of the object, an acceptor, and, while it
// owns the largest ballot, the coordinator.
type Process struct {
	id    protocol.ID
	n     int
	toAll bool

	command uint64 // the last one of the user
	section uint64 // of the user
	leaving bool   // its Exit is not executed yet
	ejected bool   // it was, and has not called exit yet

	// The state machine, after the first executed commands of the log.
	executed int
	queue    []section // the first one is inside
	last     []uint64  // by process: ID of its last command that was executed
	ended    []uint64  // by process: its last section that has ended

	ballot   uint64       // the largest that is known
	leading  bool         // it is this process's, and a majority has promised
	promised protocol.Set // who has promised it, as long as too few have
	log      []place      // by place, from 1
	pending  []Command    // not executed, as they came

	suspected protocol.Set
	asked     section // the one whose end this process has asked for last
}

type section struct {
	who protocol.ID
	id  uint64
}

// A place is what is known of one place in the order of commands.
type place struct {
	Entry
	votes []vote // until it is decided
}

// A vote is who has accepted what the owner of a ballot has proposed.
type vote struct {
	ballot uint64
	by     protocol.Set
}

// Step implements protocol.Process.
func (p *Process) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.section = p.command + 1
		p.ask(Enter, "", out)
	case protocol.Issue:
		p.ask(Invoke, ev.Data, out)
	case protocol.Exit:
		p.exit(out)
	case protocol.Suspect:
		p.suspected.Add(ev.From)
	case protocol.Restore:
		p.suspected.Remove(ev.From)
	case protocol.Receive:
		p.receive(ev.From, ev.Msg, out)
	default:
		panic("statemachine: unexpected event")
	}
	p.succeed(out)
	p.eject(out)
}

// ask makes a command of the user.
func (p *Process) ask(do uint8, op string, out *protocol.Out[Message]) {
	p.command++
	p.request(Command{Do: do, Who: p.id, ID: p.command, Section: p.section, Op: op}, out)
}

// request makes a command known to all, since anybody may be the next coordinator. The present one proposes it.
func (p *Process) request(c Command, out *protocol.Out[Message]) {
	if !p.leading {
		out.Broadcast(Message{Kind: Request, Command: c})
	}
	p.onRequest(c, out)
}

func (p *Process) exit(out *protocol.Out[Message]) {
	if p.ejected {
		p.ejected = false
		out.Rem()
		return
	}
	p.leaving = true
	p.ask(Exit, "", out)
}

func (p *Process) receive(from protocol.ID, m Message, out *protocol.Out[Message]) {
	switch m.Kind {
	case Request:
		p.onRequest(m.Command, out)
	case Prepare:
		p.onPrepare(from, m, out)
	case Promise:
		p.onPromise(from, m, out)
	case Propose:
		if m.Ballot >= p.ballot {
			p.adopt(m.Ballot, out)
			p.accept(m, out)
		}
	case Accepted:
		p.onAccepted(from, m, out)
	case Decided:
		p.decide(m.Place, m.Command, out)
	}
}

func (p *Process) onRequest(c Command, out *protocol.Out[Message]) {
	if p.over(c) || slices.Contains(p.pending, c) {
		return
	}
	p.pending = append(p.pending, c)
	if p.leading {
		p.offer(c, out)
	}
}

// offer proposes a command for the next free place, unless it has one.
func (p *Process) offer(c Command, out *protocol.Out[Message]) {
	if !slices.ContainsFunc(p.log[p.executed:], func(s place) bool { return s.Command == c }) {
		p.propose(p.next(), c, out)
	}
}

// next is the place after those of this ballot, and after those that it began with: all of these are decided, or
// proposed in it. Behind it the log may have what is left of earlier ballots, which nothing came of.
func (p *Process) next() uint64 {
	k := len(p.log)
	for k > 0 && !p.log[k-1].Decided && p.log[k-1].Ballot != p.ballot {
		k--
	}
	return uint64(k + 1)
}

func (p *Process) propose(at uint64, c Command, out *protocol.Out[Message]) {
	m := Message{Kind: Propose, Ballot: p.ballot, Place: at, Command: c}
	out.Broadcast(m)
	p.accept(m, out)
}

// at returns a place of the log. It is valid until the log grows.
func (p *Process) at(k uint64) *place {
	for uint64(len(p.log)) < k {
		p.log = append(p.log, place{})
	}
	return &p.log[k-1]
}

func (p *Process) accept(m Message, out *protocol.Out[Message]) {
	s := p.at(m.Place)
	s.Ballot, s.Command = m.Ballot, m.Command
	m.Kind = Accepted
	switch to := owner(m.Ballot, p.n); {
	case p.toAll:
		out.Broadcast(m)
		p.onAccepted(p.id, m, out)
	case to == p.id:
		p.onAccepted(p.id, m, out)
	default:
		out.Send(to, m)
	}
}

// onAccepted counts, for each ballot apart: a process that has accepted what in a later one may not
// have accepted anything in this one.
func (p *Process) onAccepted(from protocol.ID, m Message, out *protocol.Out[Message]) {
	s := p.at(m.Place)
	if s.Decided {
		return
	}
	i, found := slices.BinarySearchFunc(s.votes, m.Ballot, func(v vote, b uint64) int { return cmp.Compare(v.ballot, b) })
	if !found {
		s.votes = slices.Insert(s.votes, i, vote{m.Ballot, protocol.NewSet(p.n)})
	}
	s.votes[i].by.Add(from)
	if 2*s.votes[i].by.Len() <= p.n {
		return
	}
	if !p.toAll {
		out.Broadcast(Message{Kind: Decided, Place: m.Place, Command: m.Command})
	}
	p.decide(m.Place, m.Command, out)
}

func (p *Process) decide(at uint64, c Command, out *protocol.Out[Message]) {
	s := p.at(at)
	s.Decided, s.Command, s.votes = true, c, nil
	for p.executed < len(p.log) && p.log[p.executed].Decided {
		p.executed++
		p.execute(p.log[p.executed-1].Command, uint64(p.executed), out)
	}
}

// over: the command was executed, or is in vain. One that has two places, because a coordinator did
// not know of the first, is executed in the first.
func (p *Process) over(c Command) bool {
	switch c.Do {
	case Nothing:
		return true
	case Eject:
		return c.Section <= p.ended[c.Who]
	}
	return c.ID <= p.last[c.Who]
}

func (p *Process) execute(c Command, at uint64, out *protocol.Out[Message]) {
	if p.over(c) {
		return
	}
	s, mine := section{c.Who, c.Section}, c.Who == p.id
	if c.Do != Eject {
		p.last[c.Who] = c.ID
	}
	switch c.Do {
	case Enter:
		if p.queue = append(p.queue, s); len(p.queue) == 1 {
			p.admit(out)
		}
	case Invoke:
		if !p.inside(s) {
			break // it fails: its user is ejected
		}
		out.Invoke(c.Op, at)
		if mine {
			out.Outcome()
		}
	case Exit:
		if mine {
			p.leaving = false
			out.Rem()
		}
		p.end(s, out)
	case Eject:
		if mine && !p.leaving { // it is inside: who asked for its end has executed what let it in
			p.ejected = true
			out.Ejected()
		}
		p.end(s, out)
	}
	p.pending = slices.DeleteFunc(p.pending, p.over)
}

func (p *Process) inside(s section) bool { return len(p.queue) > 0 && p.queue[0] == s }

// end lets the next one in, if the section is inside.
func (p *Process) end(s section, out *protocol.Out[Message]) {
	if p.inside(s) {
		p.ended[s.who] = s.id
		p.queue = slices.Delete(p.queue, 0, 1)
		p.admit(out)
	}
}

func (p *Process) admit(out *protocol.Out[Message]) {
	if len(p.queue) > 0 && p.queue[0].who == p.id {
		out.Crit(0)
	}
}

// eject asks once for the end of a section whose user is inside and suspected.
func (p *Process) eject(out *protocol.Out[Message]) {
	if len(p.queue) == 0 || p.asked == p.queue[0] || !p.suspected.Has(p.queue[0].who) {
		return
	}
	p.asked = p.queue[0]
	p.request(Command{Do: Eject, Who: p.asked.who, Section: p.asked.id}, out)
}

// succeed begins a ballot where the coordinator is suspected, and so is everybody before this process.
func (p *Process) succeed(out *protocol.Out[Message]) {
	if !p.suspected.Has(owner(p.ballot, p.n)) {
		return
	}
	for id := range p.id {
		if !p.suspected.Has(id) {
			return
		}
	}
	b := p.ballot + 1
	for owner(b, p.n) != p.id {
		b++
	}
	p.adopt(b, out)
	out.Broadcast(Message{Kind: Prepare, Ballot: b, Place: uint64(p.executed + 1)})
	p.promised.Add(p.id)
}

// adopt takes part in no earlier ballot any more. Who coordinated has told nobody of its own commands.
func (p *Process) adopt(b uint64, out *protocol.Out[Message]) {
	if b == p.ballot {
		return
	}
	if p.leading {
		for _, c := range p.pending {
			out.Broadcast(Message{Kind: Request, Command: c})
		}
	}
	p.ballot, p.leading = b, false
	p.promised.Clear()
}

func (p *Process) onPrepare(from protocol.ID, m Message, out *protocol.Out[Message]) {
	if m.Ballot < p.ballot {
		return // its sender will hear of the larger one
	}
	p.adopt(m.Ballot, out)
	answer := Message{Kind: Promise, Ballot: m.Ballot, Place: m.Place}
	for k := m.Place; k <= uint64(len(p.log)); k++ {
		answer.Log = append(answer.Log, p.log[k-1].Entry)
	}
	out.Send(from, answer)
}

// onPromise takes over what was accepted in later ballots than here, as if it had been accepted here:
// whatever was decided before those ballots is the same.
func (p *Process) onPromise(from protocol.ID, m Message, out *protocol.Out[Message]) {
	if m.Ballot != p.ballot || p.leading {
		return
	}
	for i, e := range m.Log {
		k := m.Place + uint64(i)
		switch s := p.at(k); {
		case s.Decided:
		case e.Decided:
			p.decide(k, e.Command, out)
		case e.Ballot > s.Ballot:
			s.Entry = e
		}
	}
	if p.promised.Add(from); 2*p.promised.Len() > p.n {
		p.lead(out)
	}
}

// lead completes what was begun, and goes on with what has no place yet.
func (p *Process) lead(out *protocol.Out[Message]) {
	p.leading = true
	p.promised.Clear()
	for k := p.executed + 1; k <= len(p.log); k++ {
		if s := p.log[k-1]; !s.Decided {
			p.propose(uint64(k), s.Command, out)
		}
	}
	for _, c := range slices.Clone(p.pending) {
		p.offer(c, out)
	}
}
