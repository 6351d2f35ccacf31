package maekawa

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// Basic is the algorithm without what keeps it from deadlock.
var Basic = basic("", "permission from a voting set; deadlocks", false)

// PrintedVote is Basic with the handler of REQUEST as printed, for requests of others
// only: the own one is granted without a vote.
var PrintedVote = basic("printed-vote", "the same read literally: the own request takes no vote", true, "exclusion")

func basic(variant, title string, printedVote bool, refuted ...string) protocol.Algorithm[Message] {
	return protocol.Algorithm[Message]{
		Info: protocol.Info{
			Name:     "maekawa-basic",
			Variant:  variant,
			Title:    title,
			Source:   source,
			Family:   protocol.Quorum,
			Users:    protocol.Members,
			Lacks:    []string{"deadlock", "progress", "starvation"},
			Refuted:  refuted,
			Messages: messages[:Release+1],
			Options:  []protocol.Option{sets},
			Claims:   append(slices.Clone(lowLoad), protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(2), "2")),
		},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[Message] {
			return &BasicProcess{id: id, n: c.N, voters: votersOf(id, c), printedVote: printedVote}
		},
		Fields: Message.fields,
		KindOf: func(m Message) int { return int(m.Kind) },
		Ints:   ints,
		Text:   text,
	}
}

// BasicProcess is one participant of Basic and PrintedVote. Its states are RELEASED,
// WANTED and HELD on slides: InRem, InTry and InCrit.
type BasicProcess struct {
	id          protocol.ID
	n           int
	voters      []protocol.ID // V_i
	printedVote bool

	section protocol.Section
	replies uint64        // received for the own request; 0 unless trying
	voted   bool          // for somebody who has not released yet
	queue   []protocol.ID // who waits for the vote, in the order of arrival
}

// Step implements protocol.Process.
func (p *BasicProcess) Step(ev protocol.Event[Message], out *protocol.Out[Message]) {
	switch ev.Kind {
	case protocol.Start:
	case protocol.Try:
		p.try(out)
	case protocol.Exit:
		p.exit(out)
	case protocol.Receive:
		p.receive(ev.From, ev.Msg.Kind, out)
	default:
		panic("maekawa: unexpected event")
	}
}

func (p *BasicProcess) receive(from protocol.ID, kind uint8, out *protocol.Out[Message]) {
	switch kind {
	case Request:
		p.onRequest(from, out)
	case Reply:
		p.onReply(out)
	case Release:
		p.onRelease(out)
	}
}

// send sends a message, which the process itself receives at once.
func (p *BasicProcess) send(to protocol.ID, kind uint8, out *protocol.Out[Message]) {
	if to == p.id {
		p.receive(p.id, kind, out)
		return
	}
	out.Send(to, Message{Kind: kind})
}

// try asks all of the voting set, the process itself included.
func (p *BasicProcess) try(out *protocol.Out[Message]) {
	p.section = protocol.InTry
	for _, j := range p.voters {
		p.send(j, Request, out)
	}
}

// onRequest votes for j, or lets it wait. As printed it is "from p_j (j != i)".
func (p *BasicProcess) onRequest(j protocol.ID, out *protocol.Out[Message]) {
	switch {
	case p.printedVote && j == p.id:
		p.onReply(out)
	case p.section == protocol.InCrit || p.voted:
		p.queue = append(p.queue, j)
	default:
		p.vote(j, out)
	}
}

func (p *BasicProcess) vote(j protocol.ID, out *protocol.Out[Message]) {
	p.voted = true
	p.send(j, Reply, out)
}

// onReply enters with the last of the votes.
func (p *BasicProcess) onReply(out *protocol.Out[Message]) {
	if p.section != protocol.InTry {
		panic("maekawa: a REPLY that nobody waits for")
	}
	p.replies++
	if p.replies == uint64(len(p.voters)) {
		p.section, p.replies = protocol.InCrit, 0
		out.Crit(0)
	}
}

// exit gives all votes back, its own among them.
func (p *BasicProcess) exit(out *protocol.Out[Message]) {
	p.section = protocol.InRem
	out.Rem()
	for _, j := range p.voters {
		p.send(j, Release, out)
	}
}

// onRelease votes for the next one that waits.
func (p *BasicProcess) onRelease(out *protocol.Out[Message]) {
	p.voted = false
	if len(p.queue) > 0 {
		next := p.queue[0]
		p.queue = slices.Delete(p.queue, 0, 1)
		p.vote(next, out)
	}
}
