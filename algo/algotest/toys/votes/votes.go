// Package votes is mutual exclusion by the votes of a majority, for tests of drivers whose
// members have leases at each other. A member gives its vote to one user, and to another one
// when that user gave it back, or when its lease has Ended; a user that is inside loses a
// vote at Lapsed. So it is safe exactly because a member gets Ended of a user only after
// that user had Lapsed of the member. Its variants make one mistake each.
//
// A user asks member after member by their ids, and begins anew with each change of its
// leases: so nobody who has the vote of a member waits for that of a lower one.
package votes

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// A Mistake is what a variant does wrong.
type Mistake uint8

// The mistakes. None revokes no lease; Revokes is no mistake.
const (
	None    Mistake = iota
	Revokes         // right: a member whose vote two want revokes, once in its life, the lease of who has it
	Deaf            // a user keeps the votes of members of which it had Lapsed
	Hasty           // a member gives its vote to another one when it had Lapsed of the user
	Forgets         // a later life votes at once, though the one before gave its vote to somebody
	Silent          // a later life never votes
)

// A Ballot is a message.
type Ballot struct {
	Kind    uint8
	Attempt uint16
}

// The kinds of ballots.
const (
	ask uint8 = iota
	vote
	back
)

var kinds = [...]string{ask: "ASK", vote: "VOTE", back: "BACK"}

// Algorithm is the algorithm with a mistake.
func Algorithm(m Mistake) protocol.Algorithm[Ballot] {
	return protocol.Algorithm[Ballot]{
		Info: protocol.Info{
			Name: "votes", Title: "votes of a majority, given anew when a lease has ended",
			Source: "a toy of tests", Family: protocol.Quorum, Users: protocol.Members,
			Detector: protocol.LeaseDetector, Tolerates: protocol.Crash | protocol.Recovery, Majority: true,
			Messages: []protocol.Message{{Name: "ASK"}, {Name: "VOTE"}, {Name: "BACK"}},
		},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Ballot] {
			return &process{id: id, n: c.N, mistake: m, back: make([]uint16, c.N)}
		},
		Fields: func(m Ballot, c *protocol.Codec) Ballot {
			protocol.Upto(c, &m.Kind, back)
			protocol.Upto(c, &m.Attempt, math.MaxUint16)
			return m
		},
		KindOf: func(m Ballot) int { return int(m.Kind) },
		Ints:   func(Ballot) int { return 1 },
		Text:   func(m Ballot) string { return fmt.Sprintf("%s(%d)", kinds[m.Kind], m.Attempt) },
	}
}

// none stands for no member.
const none = 0xff

// A request is a user's attempt to get a vote.
type request struct {
	user    uint8
	attempt uint16
}

type process struct {
	id      protocol.ID
	n       int
	mistake Mistake
	leased  uint64 // members with which there is a session

	// Of its user.
	section protocol.Section
	attempt uint16
	votes   uint64
	asked   uint64 // members asked in this attempt

	// Of its vote.
	given   request // user none: to nobody
	begun   bool    // had its Start
	queue   []request
	back    []uint16 // by user: the last attempt that is over, of this life of it
	before  uint64   // members that may count on a vote of an earlier life
	revoked bool
}

// Step implements protocol.Process.
func (p *process) Step(ev protocol.Event[Ballot], out *protocol.Out[Ballot]) {
	from := uint8(ev.From)
	switch ev.Kind {
	case protocol.Start:
		if p.begun, p.given.user = true, none; ev.Arg > 1 && p.mistake != Forgets {
			p.before = (1<<p.n - 1) &^ (1 << p.id)
		}
	case protocol.Restore:
		p.leased |= 1 << from
		p.retry(out)
	case protocol.Suspect:
		p.suspect(from, ev.Arg, out)
	case protocol.Try:
		p.section = protocol.InTry
		p.retry(out)
	case protocol.Exit:
		p.section = protocol.InRem
		p.giveBack(out)
		out.Rem()
	case protocol.Receive:
		switch ev.Msg.Kind {
		case ask:
			p.wanted(request{from, ev.Msg.Attempt}, out)
		case vote:
			p.voted(request{from, ev.Msg.Attempt}, out)
		case back:
			p.over(request{from, ev.Msg.Attempt}, out)
		}
	default:
		panic(fmt.Sprintf("votes: it has no event %d", ev.Kind))
	}
}

func (p *process) suspect(q uint8, arg uint64, out *protocol.Out[Ballot]) {
	if arg == protocol.Ended {
		if p.mistake != Silent {
			p.before &^= 1 << q
		}
		p.forget(q, out)
		return
	}
	if p.leased &^= 1 << q; p.mistake == Hasty {
		p.forget(q, out)
	}
	if p.mistake != Deaf {
		p.votes &^= 1 << q
	}
	if p.section == protocol.InCrit && !p.most(p.votes) {
		p.section = protocol.InLost
		out.Ejected()
	}
	p.retry(out)
}

// forget takes back the vote of a user whose lease has ended.
func (p *process) forget(q uint8, out *protocol.Out[Ballot]) {
	p.over(request{q, 1<<16 - 1}, out)
	p.back[q] = 0
}

func (p *process) most(set uint64) bool { return 2*bits.OnesCount64(set) > p.n }

// reach is the set of members that it can ask.
func (p *process) reach() uint64 { return p.leased | 1<<p.id }

// retry begins an attempt, if its user tries.
func (p *process) retry(out *protocol.Out[Ballot]) {
	if p.section != protocol.InTry {
		return
	}
	p.giveBack(out)
	p.attempt++
	if p.most(p.reach()) {
		p.next(out)
	}
}

// giveBack ends an attempt, or a critical section.
func (p *process) giveBack(out *protocol.Out[Ballot]) {
	asked := p.asked
	p.asked, p.votes = 0, 0
	for j := range uint8(p.n) {
		switch {
		case asked&(1<<j) == 0:
		case j == uint8(p.id):
			p.over(request{j, p.attempt}, out)
		case p.leased&(1<<j) != 0:
			out.Send(protocol.ID(j), Ballot{back, p.attempt})
		}
	}
}

// next asks the next member, or enters.
func (p *process) next(out *protocol.Out[Ballot]) {
	if p.most(p.votes) {
		p.section = protocol.InCrit
		out.Crit(0)
		return
	}
	if p.reach()&^p.asked == 0 {
		return
	}
	j := uint8(bits.TrailingZeros64(p.reach() &^ p.asked))
	p.asked |= 1 << j
	if j == uint8(p.id) {
		p.wanted(request{j, p.attempt}, out)
		return
	}
	out.Send(protocol.ID(j), Ballot{ask, p.attempt})
}

// voted counts a vote for an attempt that goes on.
func (p *process) voted(r request, out *protocol.Out[Ballot]) {
	if p.section == protocol.InTry && r.attempt == p.attempt && p.asked&(1<<r.user) != 0 && p.votes&(1<<r.user) == 0 {
		p.votes |= 1 << r.user
		p.next(out)
	}
}

// wanted lets a user wait for the vote.
func (p *process) wanted(r request, out *protocol.Out[Ballot]) {
	if r.attempt <= p.back[r.user] {
		return // it was given back before it was asked for
	}
	p.queue = append(p.queue, r)
	if who := p.given.user; p.mistake == Revokes && who != none && who != uint8(p.id) && who != r.user && !p.revoked {
		p.revoked = true
		out.Revoke(protocol.ID(who))
	}
	p.give(out)
}

// over ends the attempts of a user up to one.
func (p *process) over(r request, out *protocol.Out[Ballot]) {
	p.back[r.user] = max(p.back[r.user], r.attempt)
	p.queue = slices.DeleteFunc(p.queue, func(q request) bool { return q.user == r.user && q.attempt <= r.attempt })
	if p.given.user == r.user && p.given.attempt <= r.attempt {
		p.given = request{user: none}
	}
	p.give(out)
}

// give gives the vote to the first one who waits for it.
func (p *process) give(out *protocol.Out[Ballot]) {
	if p.given.user != none || p.before != 0 || len(p.queue) == 0 {
		return
	}
	p.given = p.queue[0]
	p.queue = slices.Delete(p.queue, 0, 1)
	if p.given.user != uint8(p.id) {
		out.Send(protocol.ID(p.given.user), Ballot{vote, p.given.attempt})
		return
	}
	p.voted(p.given, out)
}

// State implements protocol.Process.
func (p *process) State(c *protocol.Codec) {
	protocol.Upto(c, &p.section, protocol.InIssue)
	c.Bools(&p.begun, &p.revoked)
	c.Uint(&p.leased)
	protocol.Upto(c, &p.attempt, math.MaxUint16)
	c.Uints(&p.votes, &p.asked, &p.before)
	p.given.fields(c)
	for i := range protocol.List(c, &p.queue) {
		p.queue[i].fields(c)
	}
	for i := range p.back {
		protocol.Upto(c, &p.back[i], math.MaxUint16)
	}
}

func (r *request) fields(c *protocol.Codec) {
	protocol.Upto(c, &r.user, math.MaxUint8)
	protocol.Upto(c, &r.attempt, math.MaxUint16)
}
