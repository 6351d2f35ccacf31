package consensus

import (
	"math"

	"github.com/poundlock/poundlock/protocol"
)

// With runs an algorithm that has Info.Consensus over Paxos. It panics where the algorithm has no
// use for consensus.
func With[M any](alg protocol.Algorithm[M]) protocol.Algorithm[Frame[M]] {
	return Over(alg, paxos[M])
}

// A Frame is an Envelope of Paxos.
type Frame[M any] = Envelope[M, Paxos[M]]

// The kinds of Paxos.
const (
	Prepare  uint8 = iota // a ballot begins
	Promise               // no smaller ballot is taken part in; with what was accepted in Last, if that is one
	Accept                // the value of a ballot
	Accepted              // it is accepted
	Refuse                // a larger ballot was promised: Last
)

var paxosKinds = []protocol.Message{
	Prepare: {Name: "PREPARE"}, Promise: {Name: "PROMISE"}, Accept: {Name: "ACCEPT"}, Accepted: {Name: "ACCEPTED"},
	Refuse: {Name: "REFUSE"},
}

// A Ballot is one attempt to decide, of the process that leads it.
type Ballot = protocol.Epoch

// A Paxos is a message about a ballot.
type Paxos[M any] struct {
	Kind   uint8
	Ballot Ballot
	Last   Ballot
	Value  M // of Accept, and of Promise where Last is a ballot
}

// valued reports whether a message has a value.
func (m Paxos[M]) valued() bool { return m.Kind == Accept || m.Kind == Promise && m.Last != Ballot{} }

func paxos[M any](alg *protocol.Algorithm[M]) Core[M, Paxos[M]] {
	return Core[M, Paxos[M]]{
		Messages: paxosKinds,
		New: func(id protocol.ID, n int) Instance[M, Paxos[M]] {
			return &synod[M]{alg: alg, id: id, n: n, ahead: id, answers: make([]bool, n)}
		},
		Fields: func(m Paxos[M], c *protocol.Codec) Paxos[M] {
			protocol.Upto(c, &m.Kind, Refuse)
			c.Epoch(&m.Ballot, math.MaxUint64)
			c.Epoch(&m.Last, math.MaxUint64)
			if m.valued() {
				m.Value = alg.Visit(m.Value, c)
			}
			return m
		},
		KindOf: func(m Paxos[M]) int { return int(m.Kind) },
		Fits: func(m Paxos[M], n int) bool {
			return max(m.Ballot.Leader, m.Last.Leader) < protocol.ID(n) && (!m.valued() || alg.Fits(m.Value, n, true))
		},
		Asks: func(m Paxos[M]) bool { return m.Kind == Prepare || m.Kind == Accept },
		Ints: func(m Paxos[M]) int {
			if m.valued() {
				return 4 + alg.Ints(m.Value)
			}
			return 4
		},
		Text: func(m Paxos[M]) string {
			text := m.Ballot.Text()
			if m.Last != (Ballot{}) {
				text += "," + m.Last.Text()
			}
			if m.valued() {
				text += "," + alg.Text(m.Value)
			}
			return text
		},
	}
}

// A synod is an acceptor and a proposer.
type synod[M any] struct {
	alg *protocol.Algorithm[M]
	id  protocol.ID
	n   int

	promised Ballot      // takes part in no smaller ballot
	accepted Ballot      // none: nothing
	value    M           // accepted
	ahead    protocol.ID // whose larger ballot this process waits for; itself: nobody's (see yield)
	round    uint64      // the largest one of a ballot that it knows of

	ballot   Ballot // its own, which is under way; none: it has none
	answers  []bool // by process: of this ballot, promised or accepted
	choosing bool   // it has no majority of promises yet
	best     Ballot // the largest one that they have accepted
	choice   M      // the value of the ballot; the proposal, until it is chosen
}

// Lead begins a ballot larger than all that are known, unless one is under way.
func (p *synod[M]) Lead(v M, t *Turn[M, Paxos[M]]) {
	if p.ballot != (Ballot{}) || p.ahead != p.id {
		return
	}
	p.round = max(p.round, p.promised.Round) + 1
	p.ballot, p.choosing = Ballot{Round: p.round, Leader: p.id}, true
	clear(p.answers)
	p.promised = p.ballot
	p.best, p.choice = p.accepted, p.value
	if p.best == (Ballot{}) {
		p.choice = v
	}
	t.Broadcast(Paxos[M]{Kind: Prepare, Ballot: p.ballot})
	p.count(p.id, t)
}

// count counts an answer to the ballot, and goes on with a majority.
func (p *synod[M]) count(from protocol.ID, t *Turn[M, Paxos[M]]) {
	p.answers[from] = true
	k := 0
	for _, yes := range p.answers {
		if yes {
			k++
		}
	}
	if 2*k <= p.n {
		return
	}
	if !p.choosing {
		t.Decide(p.choice)
		return
	}
	p.choosing, p.best = false, Ballot{}
	clear(p.answers)
	p.accepted, p.value = p.ballot, p.choice
	t.Broadcast(p.asks())
	p.count(p.id, t)
}

// asks is what the ballot asks the acceptors at present.
func (p *synod[M]) asks() Paxos[M] {
	if p.choosing {
		return Paxos[M]{Kind: Prepare, Ballot: p.ballot}
	}
	return Paxos[M]{Kind: Accept, Ballot: p.ballot, Value: p.choice}
}

// Repeat asks again who has not answered.
func (p *synod[M]) Repeat(j protocol.ID, t *Turn[M, Paxos[M]]) {
	if p.ballot != (Ballot{}) && !p.answers[j] {
		t.Send(j, p.asks())
	}
}

// GiveUp waits for a process no more.
func (p *synod[M]) GiveUp(j protocol.ID, _ *Turn[M, Paxos[M]]) {
	if p.ahead == j {
		p.ahead = p.id
	}
}

// Receive takes a message about a ballot.
func (p *synod[M]) Receive(from protocol.ID, m Paxos[M], t *Turn[M, Paxos[M]]) {
	switch {
	case m.Kind == Prepare, m.Kind == Accept:
		p.answer(from, m, t)
	case m.Kind == Refuse:
		p.round = max(p.round, m.Last.Round)
		if m.Ballot == p.ballot {
			p.end()
			t.Lose(m.Last.Leader)
		}
	case m.Ballot != p.ballot:
		if p.ballot == (Ballot{}) {
			t.Again(from)
		}
	case m.Kind == Promise && p.choosing:
		if p.best.Before(m.Last) {
			p.best, p.choice = m.Last, m.Value
		}
		p.count(from, t)
	case m.Kind == Accepted && !p.choosing:
		p.count(from, t)
	}
}

// end ends the own ballot.
func (p *synod[M]) end() {
	var none M
	p.ballot, p.best, p.choice, p.choosing = Ballot{}, Ballot{}, none, false
	clear(p.answers)
}

// yield ends the own ballot for that of a process which is trusted: it goes first, for otherwise two
// could interrupt each other for ever.
//
// A process that waits has ahead = j. It has answered a ballot of j; then, either j's ballot is under way, or j is
// about to send it what ends the wait, a PROPOSE, DECIDED, or what a larger ballot of j asks, or
// that is on its way, or it is about to hear Suspect or Restore of j. For where j's ballot ends undecided j
// asks its coordinator again (Lose), if that one's own ballot is not why; and where the coordinator
// answers j's ballot after that, j asks it once more (Again), since the first PROPOSE may have come before
// the wait. Nobody else needs to be told: a process that does not coordinate would not lead.
func (p *synod[M]) yield(to protocol.ID, t *Turn[M, Paxos[M]]) {
	if p.ballot != (Ballot{}) {
		t.Lose(to)
	}
	p.end()
	p.ahead = p.id
	if t.Trusts(to) {
		p.ahead = to
	}
}

// answer is what an acceptor does.
func (p *synod[M]) answer(from protocol.ID, m Paxos[M], t *Turn[M, Paxos[M]]) {
	if m.Ballot.Before(p.promised) {
		t.Send(from, Paxos[M]{Kind: Refuse, Ballot: m.Ballot, Last: p.promised})
		return
	}
	p.promised = m.Ballot // this holds for its own ballot, too
	if m.Kind == Prepare {
		t.Send(from, Paxos[M]{Kind: Promise, Ballot: m.Ballot, Last: p.accepted, Value: p.value})
	} else {
		p.accepted, p.value = m.Ballot, m.Value
		t.Send(from, Paxos[M]{Kind: Accepted, Ballot: m.Ballot})
	}
	p.yield(from, t) // last: its next ballot, which may begin at once, is to know of what it has accepted
}

// State implements Instance.
func (p *synod[M]) State(c *protocol.Codec) {
	c.Uint(&p.round)
	c.ID(&p.ahead, p.n)
	c.Flags(p.answers)
	c.Bool(&p.choosing)
	for _, b := range [...]*Ballot{&p.promised, &p.accepted, &p.ballot, &p.best} {
		c.Epoch(b, protocol.ID(p.n-1))
	}
	visitIf(c, p.accepted != Ballot{}, &p.value, p.alg)
	visitIf(c, p.ballot != Ballot{}, &p.choice, p.alg)
}

// Show implements Instance.
func (p *synod[M]) Show() string {
	if p.ballot != (Ballot{}) {
		return "ballot " + p.ballot.Text()
	}
	return "promised " + p.promised.Text()
}
