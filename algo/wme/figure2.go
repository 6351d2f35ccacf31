package wme

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// This file is Figure 2 of the paper: an epoch ends, and the next one begins with what is decided. See figure1.go.

// ownerSuspected: the owner of the token is suspected, which ends the epoch.
func (p *Process) ownerSuspected() bool { return p.corrects(e2) && p.suspected.Has(p.curOwner) }

// suspect ends the epoch where the owner of the token is suspected.
func (p *Process) suspect(j protocol.ID, out *protocol.Out[Message]) {
	p.suspected.Add(j)
	p.askAnother(j, out)
	if p.ownerSuspected() && p.joined() && !p.block {
		p.end(p.id, out)
	}
}

// end is lines 3-7. It votes for the end of this epoch, and for who is to own the token in the next one: from
// now on nothing is logged here in this one.
func (p *Process) end(owner protocol.ID, out *protocol.Out[Message]) {
	p.block = true
	p.logged.Clear()
	p.early = slices.DeleteFunc(p.early, func(e early) bool { return e.msg.Epoch == p.curEp })
	p.missed = 0
	p.broadcast(p.vote(owner), out)
}

// vote is what this process knows of the epoch. The last operation may be known to it alone; those
// before are committed, so that a few of them are enough.
func (p *Process) vote(owner protocol.ID) Message {
	b := p.bulk(p.opHist[max(0, len(p.opHist)-p.carry):])
	b.Owner = owner
	raise(b.Lives, p.wishes)
	return Message{Kind: NewEp, Number: p.curSN, Done: p.top, More: b}
}

// bulk is what this process knows of the epoch, with these operations.
func (p *Process) bulk(records []Record) *Bulk {
	return &Bulk{
		Owner:    p.curOwner,
		Records:  slices.Clone(records),
		Granted:  slices.Clone(p.granted),
		Requests: slices.Clone(p.reqs),
		Lives:    slices.Clone(p.lives),
	}
}

// raise makes numbers at least what others are.
func raise(numbers, others []uint64) {
	for j, o := range others {
		numbers[j] = max(numbers[j], o)
	}
}

// onVote is lines 1-2 and 9-16: it counts the votes, one of each process. A process that has not voted yet joins in: for the present
// owner, because it does not suspect it.
func (p *Process) onVote(from protocol.ID, m Message, out *protocol.Out[Message]) {
	if p.proposed {
		return // they are counted
	}
	if p.block || p.corrects(e4b) {
		p.votes[from] = m
	}
	if !p.block {
		p.end(p.curOwner, out)
	}
	votes := 0
	for j, v := range p.votes {
		if v.More != nil && (p.corrects(e4a) || !slices.ContainsFunc(p.votes[:j], func(o Message) bool { return text(o) == text(v) })) {
			votes++
		}
	}
	if !p.proposed && 2*votes > p.n {
		p.proposed = true
		out.Propose(p.curEp, p.proposal())
		for j := range p.votes {
			if protocol.ID(j) != p.id { // who asks gets the vote of this process again
				p.votes[j] = Message{}
			}
		}
	}
}

// proposal is line 15: the vote with the largest number: whatever was committed in this epoch was logged
// by a majority, and so by one of those that voted. Votes with that number have the same last
// operation. The owner may be any process, and is one that is not suspected, nor comes back, where
// there is such a one: who proposes is. Requests of lives that end with the epoch are left out.
func (p *Process) proposal() Message {
	var best Message
	lives := slices.Clone(p.lives)
	for _, v := range p.votes {
		if v.More == nil {
			continue
		}
		if best.More == nil || v.Number > best.Number {
			best = v
		}
		raise(lives, v.More.Lives)
	}
	b := *best.More
	b.Lives = lives
	b.Requests = slices.DeleteFunc(slices.Clone(b.Requests), func(c Claim) bool { return lives[c.Who] > p.lives[c.Who] })
	unfit := func(j protocol.ID) bool { return p.suspected.Has(j) || lives[j] > p.lives[j] }
	for j, v := range p.votes {
		if unfit(b.Owner) && v.More != nil {
			b.Owner = protocol.ID(j)
		}
	}
	best.More = &b
	return best
}

// decide is lines 17-45. It begins the next epoch. What was decided to be logged is committed, and what is not in
// it is lost for ever.
func (p *Process) decide(instance uint64, d Message, out *protocol.Out[Message]) {
	if instance != p.curEp {
		panic("wme: a decision out of order")
	}
	if !p.proposed && !p.corrects(e4c) {
		return
	}
	if !p.corrects(e5) { // as printed what is logged here is not executed any more
		p.executed = max(p.executed, min(p.top, d.Done))
	}
	i, _ := p.find(d.Done + 1)
	p.opHist = p.opHist[:i]
	for _, r := range d.More.Records {
		p.fill(r)
	}
	comers := p.begin(instance+1, d.More)
	for _, c := range d.More.Requests { // the new owner needs no grant
		if c.Who == p.curOwner && p.corrects(e8) {
			p.serve(c)
		}
	}
	if !p.corrects(e13) { // as printed it enters before line 32
		p.enter(out)
	}
	p.curSN, p.top, p.committed = d.Number, d.Done, d.Done
	p.execute(out)
	p.settle(out)
	for _, j := range comers {
		p.ahead(j, out)
	}
	if !p.current() || p.late {
		p.sync(out)
	}
	p.late = false
	p.endAgain(out)
}

// fill logs a committed operation that is missing.
func (p *Process) fill(r Record) {
	if i, found := p.find(r.Number); !found && r.Number > p.executed {
		p.opHist = slices.Insert(p.opHist, i, r)
	}
}

// begin is lines 20-22, 45 and 56. It takes over what the processes agree on when an epoch begins. It returns those that asked
// to take part, and now do.
func (p *Process) begin(epoch uint64, b *Bulk) (comers []protocol.ID) {
	p.curEp, p.block, p.proposed = epoch, false, false
	if p.corrects(e7) || p.curOwner != p.id || p.state != idle { // as printed TOKEN_HELD stays: lines 46-48
		p.curOwner = b.Owner
	}
	p.missed = 0
	clear(p.votes)
	p.logged.Clear()
	copy(p.granted, b.Granted)
	p.reqs = append(p.reqs[:0], b.Requests...)
	for j, l := range b.Lives {
		p.lives[j] = l
		if p.wishes[j] == l {
			comers = append(comers, protocol.ID(j))
		}
		if p.wishes[j] <= l {
			p.wishes[j] = 0
		}
	}
	return comers
}

// settle is lines 23-28, 38-39 and 46-55: what the new epoch means for the user. As printed line 39 is for who has
// executed an operation of somebody else since it issued its own, and nobody has.
func (p *Process) settle(out *protocol.Out[Message]) {
	switch {
	case p.curOwner != p.id:
		p.eject(out)
		p.askAgain(out)
	case p.state == requesting: // it enters
	case p.state == csIssuing: // not executed, and dropped with the epoch
		if p.corrects(e11b) {
			p.invoke(out)
		}
	case p.state != csIdle:
		p.release(out)
	case p.lastIssuedOp == waitingExit:
		p.lastIssuedOp = ""
		p.exit(out)
	}
}

// endAgain ends an epoch that has just begun, where its owner is suspected, or somebody asked
// too late to take part in it. If that is the owner it is not to own the next one: see proposal.
func (p *Process) endAgain(out *protocol.Out[Message]) {
	switch late := slices.ContainsFunc(p.wishes, func(w uint64) bool { return w > 0 }); {
	case p.ownerSuspected():
		p.end(p.id, out)
	case late:
		p.end(p.curOwner, out)
	}
}

// eject is lines 46-48: it tells a user inside that the token is gone.
func (p *Process) eject(out *protocol.Out[Message]) {
	if p.state == csIdle || p.state == csIssuing {
		p.state, p.lastIssuedOp = lost, ""
		out.Ejected()
	}
}

// askAgain is lines 27-28. It asks for the token anew where the new epoch does not know of it. The request has a new
// number, because the old one may have been granted by a record that is not here.
func (p *Process) askAgain(out *protocol.Out[Message]) {
	if p.state == requesting && !slices.Contains(p.reqs, Claim{p.id, p.reqID}) {
		if p.corrects(e19) {
			p.reqID++
		}
		if p.corrects(e10) {
			p.ask(out)
		}
	}
}
