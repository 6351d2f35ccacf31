package statemachine

import (
	"slices"

	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/protocol"
)

// The kinds of Vote, which is a message of Memory.
const (
	Ask      uint8 = iota // of a client: Place, Ballot
	Promised              // the same, and what was accepted in that place, Accepted and Who
	Offer                 // of a client: Place, Ballot, Who
	Taken                 // to Who: Place, Ballot
	Refused               // the Place where the server is, and the Ballot that it has promised
	Over                  // of a client: Place, whose section has ended
)

var votes = []protocol.Message{
	Ask: {Name: "PREPARE", From: protocol.OnlyClients}, Promised: {Name: "PROMISE", From: protocol.OnlyMembers},
	Offer: {Name: "PROPOSE", From: protocol.OnlyClients}, Taken: {Name: "ACCEPTED", From: protocol.OnlyMembers},
	Refused: {Name: "REFUSED", From: protocol.OnlyMembers}, Over: {Name: "OVER", From: protocol.OnlyClients},
}

// A Vote carries what its kind needs.
type Vote struct {
	Kind     uint8
	Place    uint64
	Ballot   protocol.Stamp // of a client, in this place
	Accepted protocol.Stamp // the ballot in which Who was accepted; zero: nobody was
	Who      protocol.ID    // whose the place is
}

var memoryInfo = protocol.Info{
	Name:      "state-machine",
	Variant:   "memory",
	Title:     "a lock by consensus, with servers that keep everything in memory and may restart empty",
	Source:    "Lamport: The Part-Time Parliament, TOCS 1998; for Chen et al.: Sigma, PRDC 2005, Theorem 4",
	Family:    protocol.Quorum,
	Users:     protocol.Clients,
	Tolerates: protocol.Amnesia,
	Messages:  votes,
	Options: []protocol.Option{
		{
			Name:    "quorum",
			Default: func(c protocol.Config) int64 { return int64(quorum.Majority(c.N)) },
			Range:   func(c protocol.Config) (least, most int64) { return 1, int64(c.N) },
			Doc:     "servers that must promise and accept (default more than half)",
		},
		{
			Name:    "delay",
			Default: func(protocol.Config) int64 { return 1e6 },
			Doc:     "ns, T: the message delay that pauses after a refusal are multiples of (default 1ms)",
		},
	},
	Delay:  "delay",
	Quorum: "quorum",
	Claims: []protocol.Claim{
		protocol.Exactly(protocol.LowLoad, protocol.ToEnter, protocol.Linear(4, 0), "4N"),
		protocol.Exactly(protocol.LowLoad, protocol.Messages, protocol.Linear(5, 0), "5N"),
		protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(4), "4"),
	},
}

// Memory is a replicated lock whose clients propose: the log has a place for each section, and Paxos decides
// whose the section is. Servers accept, and forget everything when they restart.
var Memory = protocol.Algorithm[Vote]{
	Info: memoryInfo,
	New: func(id protocol.ID, c protocol.Config) protocol.Process[Vote] {
		if id < protocol.ID(c.N) {
			return &Acceptor{place: 1}
		}
		return &Proposer{
			id: id, n: c.N, m: int(memoryInfo.Option(c, "quorum")), delay: memoryInfo.Option(c, "delay"), place: 1,
			promised: protocol.NewSet(c.N), accepted: protocol.NewSet(c.N),
		}
	},
	Fields: Vote.fields,
	KindOf: func(m Vote) int { return int(m.Kind) },
	Ints:   func(m Vote) int { return []int{Ask: 3, Promised: 6, Offer: 4, Taken: 3, Refused: 3, Over: 1}[m.Kind] },
	Text:   voteText,
	Model: protocol.Model[Vote]{
		Bounds: []protocol.Bound{protocol.NewBound("rounds", 3, func(p *Proposer) uint64 { return p.ballot.Time })},
		// A server's id is nowhere but in the sets of who has answered.
		Interchangeable: func(protocol.Config) bool { return true },
		Permute:         permute,
	},
}

// An Acceptor is a server. Its places are those of the log, of which it remembers the present one.
type Acceptor struct {
	place    uint64         // the first one whose section has not ended, as far as it has heard
	promised protocol.Stamp // it accepts nothing of earlier ballots in this place; zero: it has promised nothing
	accepted protocol.Stamp // the ballot in which who was accepted; zero: nobody was
	who      protocol.ID
	asked    []protocol.ID // who wants this place, sorted
}

// Step implements protocol.Process.
func (s *Acceptor) Step(ev protocol.Event[Vote], out *protocol.Out[Vote]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Receive:
		s.receive(ev.From, ev.Msg, out)
	default:
		panic("statemachine: unexpected event at a server")
	}
}

func (s *Acceptor) receive(from protocol.ID, m Vote, out *protocol.Out[Vote]) {
	if m.Kind == Over {
		s.reach(m.Place+1, from, out)
		return
	}
	s.reach(m.Place, from, out) // all before it are over, or nobody would have got there
	if i, found := slices.BinarySearch(s.asked, from); !found {
		s.asked = slices.Insert(s.asked, i, from)
	}
	switch {
	case m.Ballot.Before(s.promised), m.Kind == Offer && m.Place < s.place:
		out.Send(from, Vote{Kind: Refused, Place: s.place, Ballot: s.promised})
	case m.Kind == Ask:
		s.promised = m.Ballot
		out.Send(from, Vote{Promised, s.place, m.Ballot, s.accepted, s.who})
	default:
		s.promised, s.accepted, s.who = m.Ballot, m.Ballot, m.Who
		out.Send(m.Who, Vote{Kind: Taken, Place: s.place, Ballot: m.Ballot})
	}
}

// reach is at a place before which all is over, and tells those that wanted an earlier one.
func (s *Acceptor) reach(place uint64, from protocol.ID, out *protocol.Out[Vote]) {
	if place <= s.place {
		return
	}
	for _, c := range s.asked {
		if c != from {
			out.Send(c, Vote{Kind: Refused, Place: place})
		}
	}
	*s = Acceptor{place: place, asked: s.asked[:0]}
}

// A Phase is what a client that tries waits for.
type Phase uint8

// The phases.
const (
	Out       Phase = iota // nothing, it does not try
	Preparing              // promises
	Proposing              // that its proposal is accepted, or that the place is over
	Pausing                // its timer: another one had a larger ballot
	phases
)

const pauseTimer = 1

// A Proposer is a client.
type Proposer struct {
	id    protocol.ID
	n     int
	m     int
	delay int64

	place    uint64         // the first one whose section has not ended, as far as it has heard
	phase    Phase          // Out: the rest is zero
	ballot   protocol.Stamp // its own
	larger   protocol.Stamp // Pausing: what it was refused for last
	promised protocol.Set   // Preparing: who has
	latest   protocol.Stamp // Preparing: the largest ballot in which one of them had accepted somebody
	who      protocol.ID    // that one
	counted  protocol.Stamp // the ballot in which accepted have accepted this client
	accepted protocol.Set
}

// Step implements protocol.Process.
func (p *Proposer) Step(ev protocol.Event[Vote], out *protocol.Out[Vote]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.prepare(1, out)
	case protocol.Exit:
		out.Broadcast(Vote{Kind: Over, Place: p.place})
		out.Rem()
		p.place++
	case protocol.Timeout:
		if ev.Timer != pauseTimer {
			panic("statemachine: unexpected timer at a client")
		}
		p.prepare(p.larger.Time+1, out)
	case protocol.Receive:
		if p.phase != Out {
			p.receive(ev.From, ev.Msg, out)
		}
	default:
		panic("statemachine: unexpected event at a client")
	}
}

func (p *Proposer) receive(from protocol.ID, m Vote, out *protocol.Out[Vote]) {
	switch m.Kind {
	case Refused:
		if m.Place > p.place {
			p.stop(out)
			p.place = m.Place
			p.prepare(1, out)
		} else if p.ballot.Before(m.Ballot) {
			p.pause(m.Ballot, out)
		}
	case Promised:
		if m.Ballot == p.ballot && p.phase == Preparing {
			p.onPromise(from, m, out)
		}
	case Taken:
		if m.Place == p.place {
			p.onTaken(from, m, out)
		}
	}
}

// prepare begins a round.
func (p *Proposer) prepare(round uint64, out *protocol.Out[Vote]) {
	p.phase, p.ballot, p.larger = Preparing, protocol.Stamp{Time: round, ID: p.id}, protocol.Stamp{}
	out.Broadcast(Vote{Kind: Ask, Place: p.place, Ballot: p.ballot})
}

// onPromise counts promises of one place, the latest that it hears of: those of earlier ones are asked for again.
func (p *Proposer) onPromise(from protocol.ID, m Vote, out *protocol.Out[Vote]) {
	again := Vote{Kind: Ask, Place: max(p.place, m.Place), Ballot: p.ballot}
	switch {
	case m.Place < p.place:
		out.Send(from, again)
		return
	case m.Place > p.place:
		for j := range p.promised.All() {
			out.Send(j, again)
		}
		ballot := p.ballot
		p.forget()
		p.place, p.phase, p.ballot = m.Place, Preparing, ballot
	}
	p.promised.Add(from)
	if p.latest.Before(m.Accepted) {
		p.latest, p.who = m.Accepted, m.Who
	}
	if p.promised.Len() < p.m {
		return
	}
	who := p.id
	if p.latest.Time > 0 {
		who = p.who // it may be decided
	}
	p.promised.Clear()
	p.phase, p.latest, p.who = Proposing, protocol.Stamp{}, 0
	out.Broadcast(Vote{Kind: Offer, Place: p.place, Ballot: p.ballot, Who: who})
}

// onTaken: some client has proposed this one, in one ballot or another.
func (p *Proposer) onTaken(from protocol.ID, m Vote, out *protocol.Out[Vote]) {
	if m.Ballot.Before(p.counted) {
		return
	}
	if p.counted.Before(m.Ballot) {
		p.counted = m.Ballot
		p.accepted.Clear()
	}
	if p.accepted.Add(from); p.accepted.Len() >= p.m {
		p.stop(out)
		out.Crit(p.place)
	}
}

// pause lets the one with a larger ballot go first.
func (p *Proposer) pause(larger protocol.Stamp, out *protocol.Out[Vote]) {
	p.promised.Clear()
	p.phase, p.larger, p.latest, p.who = Pausing, larger, protocol.Stamp{}, 0
	out.SetTimer(pauseTimer, 4*p.delay, 8*p.delay)
}

// stop ends the attempt to get the place.
func (p *Proposer) stop(out *protocol.Out[Vote]) {
	out.StopTimer(pauseTimer)
	p.forget()
}

func (p *Proposer) forget() {
	p.promised.Clear()
	p.accepted.Clear()
	p.phase, p.ballot, p.larger = Out, protocol.Stamp{}, protocol.Stamp{}
	p.latest, p.who, p.counted = protocol.Stamp{}, 0, protocol.Stamp{}
}
