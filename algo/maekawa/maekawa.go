package maekawa

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// Algorithm is the form that does not deadlock: a vote can be asked back.
var Algorithm = protocol.Algorithm[Message]{
	Info: protocol.Info{
		Name:     "maekawa",
		Title:    "permission from a voting set; votes can be asked back",
		Source:   source + "; Sanders: The Information Structure of Distributed Mutual Exclusion Algorithms, ACM TOCS 1987",
		Family:   protocol.Quorum,
		Users:    protocol.Members,
		FIFO:     true,
		Messages: messages,
		Options:  []protocol.Option{sets},
		Claims:   append(slices.Clone(lowLoad), claims...),
	},
	New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
		voters := votersOf(id, c)
		return &Process{id: id, n: c.N, voters: voters, answers: make([]answer, len(voters))}
	},
	Fields: Message.fields,
	KindOf: func(m Message) int { return int(m.Kind) },
	Ints:   ints,
	Text:   text,
	Model: protocol.Model[Message]{
		MapState:   protocol.MapState[Message],
		MapMsg:     protocol.MapMsg(Message.fields),
		Confluent:  confluent,
		Invariants: []protocol.Invariant{{Name: "maekawa/votes", Err: votes, Stable: true}},
	},
}

var claims = []protocol.Claim{
	protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(2), "2"),
	protocol.Between(protocol.HighLoad, protocol.Messages, others(3), others(6), "3(K-1) to 6(K-1)").PublishedAs("3 sqrt(N), and additional messages"),
	protocol.Between(protocol.HighLoad, protocol.SyncDelay, protocol.Fixed(1), protocol.Fixed(3), "1 to 3").PublishedAs("2"),
}

// An answer is what a process knows of one member of its set, as to its own request.
type answer uint8

const (
	none     answer = iota
	failed          // no vote, and others come first; or the vote was given back
	voted           // its vote
	inquired        // its vote, which it asked back
)

// Process is one participant, as one that asks and as one that votes.
type Process struct {
	id     protocol.ID
	n      int
	voters []protocol.ID // V_i, in increasing order

	clock uint64 // the latest timestamp that it has heard of, of other processes' requests

	section protocol.Section // InRem, InTry or InCrit
	answers []answer         // by place in voters; none unless trying

	vote  protocol.Stamp   // for whom it has voted
	asked bool             // whether it has sent INQUIRE to that one
	queue []protocol.Stamp // the others, in order. The first is before vote just if asked, and only it has no FAILED
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
		p.clock = max(p.clock, ev.Msg.Time)
		p.receive(ev.From, ev.Msg, out)
	default:
		panic("maekawa: unexpected event")
	}
}

func (p *Process) receive(from protocol.ID, m Message, out *protocol.Out[Message]) {
	switch m.Kind {
	case Request:
		p.onRequest(protocol.Stamp{Time: m.Time, ID: from}, out)
	case Reply:
		p.onReply(from, out)
	case Failed:
		p.onFailed(from, out)
	case Inquire:
		p.onInquire(from, out)
	case Yield:
		p.onYield(from, out)
	case Release:
		p.onRelease(from, out)
	}
}

// send sends a message, which the process itself receives at once.
func (p *Process) send(to protocol.ID, m Message, out *protocol.Out[Message]) {
	if to == p.id {
		p.receive(p.id, m, out)
		return
	}
	out.Send(to, m)
}

// answer returns what it knows of j.
func (p *Process) answer(j protocol.ID) *answer {
	k, found := slices.BinarySearch(p.voters, j)
	if !found {
		panic("maekawa: an answer of who was not asked")
	}
	return &p.answers[k]
}

// # Who asks

// try asks all of the voting set, the process itself included.
func (p *Process) try(out *protocol.Out[Message]) {
	p.section = protocol.InTry
	m := Message{Kind: Request, Time: p.clock + 1}
	for _, j := range p.voters {
		p.send(j, m, out)
	}
}

// onReply enters with the last of the votes. What was asked back is then kept: RELEASE
// answers it.
func (p *Process) onReply(from protocol.ID, out *protocol.Out[Message]) {
	a := p.answer(from)
	if p.section != protocol.InTry || *a >= voted {
		panic("maekawa: a REPLY that nobody waits for")
	}
	*a = voted
	if slices.Min(p.answers) == voted {
		clear(p.answers)
		p.section = protocol.InCrit
		out.Crit(0)
	}
}

// onFailed gives back all votes that were asked back: it may be long until it has all.
func (p *Process) onFailed(from protocol.ID, out *protocol.Out[Message]) {
	a := p.answer(from)
	if p.section != protocol.InTry || *a != none {
		panic("maekawa: a FAILED that says nothing new")
	}
	*a = failed
	for k, j := range p.voters {
		if p.answers[k] == inquired {
			p.yield(j, out)
		}
	}
}

// onInquire gives the vote back if some other vote may be long in coming, and else when
// that turns out. One that it has not is one that it gave back with RELEASE: channels keep
// their order, so that a vote for a new request would have come before.
func (p *Process) onInquire(from protocol.ID, out *protocol.Out[Message]) {
	a := p.answer(from)
	switch {
	case *a != voted:
	case slices.Contains(p.answers, failed):
		p.yield(from, out)
	default:
		*a = inquired
	}
}

func (p *Process) yield(to protocol.ID, out *protocol.Out[Message]) {
	*p.answer(to) = failed
	p.send(to, Message{Kind: Yield}, out)
}

// exit gives all votes back.
func (p *Process) exit(out *protocol.Out[Message]) {
	p.section = protocol.InRem
	out.Rem()
	for _, j := range p.voters {
		p.send(j, Message{Kind: Release}, out)
	}
}

// # Who votes

// onRequest votes for r if it can. If others come first, r is told; if r comes first, the
// vote is asked back, and who came first until now is told instead.
func (p *Process) onRequest(r protocol.Stamp, out *protocol.Out[Message]) {
	if p.vote == (protocol.Stamp{}) {
		p.voteFor(r, out)
		return
	}
	k := p.wait(r)
	switch {
	case k > 0 || p.vote.Before(r):
		p.send(r.ID, Message{Kind: Failed}, out)
	case p.asked:
		p.send(p.queue[1].ID, Message{Kind: Failed}, out)
	default:
		p.asked = true
		p.send(p.vote.ID, Message{Kind: Inquire}, out)
	}
}

// voteFor tells r, with its vote, how late the requests are that wait here: the next one of
// r shall come after them.
func (p *Process) voteFor(r protocol.Stamp, out *protocol.Out[Message]) {
	p.vote, p.asked = r, false
	m := Message{Kind: Reply}
	if len(p.queue) > 0 {
		m.Time = p.queue[len(p.queue)-1].Time
	}
	p.send(r.ID, m, out)
}

// onYield lets the one that gives its vote back wait again.
func (p *Process) onYield(from protocol.ID, out *protocol.Out[Message]) {
	if from != p.vote.ID || !p.asked {
		panic("maekawa: a YIELD of what was not asked back")
	}
	p.wait(p.vote)
	p.next(out)
}

func (p *Process) onRelease(from protocol.ID, out *protocol.Out[Message]) {
	if from != p.vote.ID || p.vote == (protocol.Stamp{}) {
		panic("maekawa: a RELEASE of a vote that it has not")
	}
	p.next(out)
}

// next votes for the first one that waits, or for nobody.
func (p *Process) next(out *protocol.Out[Message]) {
	if len(p.queue) == 0 {
		p.vote, p.asked = protocol.Stamp{}, false
		return
	}
	r := p.queue[0]
	p.queue = slices.Delete(p.queue, 0, 1)
	p.voteFor(r, out)
}

// wait puts r into the queue, behind k others.
func (p *Process) wait(r protocol.Stamp) (k int) {
	for k < len(p.queue) && p.queue[k].Before(r) {
		k++
	}
	p.queue = slices.Insert(p.queue, k, r)
	return k
}

// # For the checker

// confluent: a vote that no FAILED came before. What an INQUIRE of somebody else leads to
// depends on votes that failed, and this one had not.
func confluent(q protocol.Process[Message], from protocol.ID, m Message, _ bool) bool {
	return m.Kind == Reply && *q.(*Process).answer(from) == none
}

// votes is the invariant behind mutual exclusion: a process that is inside has the votes of its set.
func votes(v *protocol.View) error {
	for id, p := range protocol.Procs[*Process](v) {
		if p.section != protocol.InCrit {
			continue
		}
		for j, q := range protocol.Procs[*Process](v) {
			if slices.Contains(p.voters, j) && (q.vote == (protocol.Stamp{}) || q.vote.ID != id) {
				return fmt.Errorf("maekawa: #%d is inside without the vote of #%d", id, j)
			}
		}
	}
	return nil
}
