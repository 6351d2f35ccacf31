package wme

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// suspect ends the epoch where the owner of the token is suspected.
func (p *Process) suspect(j protocol.ID, out *protocol.Out[Message]) {
	p.suspected.Add(j)
	p.askAnother(j, out)
	if j == p.owner && p.joined && !p.blocked {
		p.end(p.id, out)
	}
}

// end votes for the end of this epoch, and for who is to own the token in the next one: from
// now on nothing is logged here in this one.
func (p *Process) end(owner protocol.ID, out *protocol.Out[Message]) {
	p.blocked = true
	p.logged.Clear()
	p.early = slices.DeleteFunc(p.early, func(e early) bool { return e.msg.Epoch == p.epoch })
	p.missed = 0
	m := p.vote(owner)
	out.Broadcast(m)
	p.onVote(p.id, m, out)
}

// vote is what this process knows of the epoch. The last operation may be known to it alone; those
// before are committed, so that a few of them are enough.
func (p *Process) vote(owner protocol.ID) Message {
	return Message{Kind: NewEp, Epoch: p.epoch, Number: p.number, Done: p.top, More: &Bulk{
		Owner:    owner,
		Records:  slices.Clone(p.log[max(0, len(p.log)-p.carry):]),
		Granted:  slices.Clone(p.granted),
		Requests: slices.Clone(p.requests),
		Lives:    p.admitted(),
	}}
}

// admitted are the lives that take part in the next epoch, as far as this process knows.
func (p *Process) admitted() []uint64 {
	lives := slices.Clone(p.lives)
	for j, w := range p.wishes {
		lives[j] = max(lives[j], w)
	}
	return lives
}

// onVote counts the votes, one of each process. Who has not voted yet joins in: for the present
// owner, because it does not suspect it.
func (p *Process) onVote(from protocol.ID, m Message, out *protocol.Out[Message]) {
	if p.proposed {
		return // they are counted
	}
	p.votes[from] = m
	if !p.blocked {
		p.end(p.owner, out)
	}
	votes := 0
	for _, v := range p.votes {
		if v.More != nil {
			votes++
		}
	}
	if !p.proposed && 2*votes > p.n {
		p.proposed = true
		out.Propose(p.epoch, p.proposal())
		for j := range p.votes {
			if protocol.ID(j) != p.id { // who asks gets the vote of this process again
				p.votes[j] = Message{}
			}
		}
	}
}

// proposal is the vote with the largest number: whatever was committed in this epoch was logged
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
		for j, l := range v.More.Lives {
			lives[j] = max(lives[j], l)
		}
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

// decide begins the next epoch. What was decided to be logged is committed, and what is not in
// it is lost for ever.
func (p *Process) decide(instance uint64, d Message, out *protocol.Out[Message]) {
	if instance != p.epoch {
		panic("wme: a decision out of order")
	}
	i, _ := p.find(d.Done + 1)
	p.log = p.log[:i]
	for _, r := range d.More.Records {
		p.fill(r)
	}
	comers := p.begin(instance+1, d.More)
	for _, c := range d.More.Requests { // the new owner needs no grant
		if c.Who == p.owner {
			p.granted[c.Who] = max(p.granted[c.Who], c.ID)
			p.forget(c)
		}
	}
	p.number, p.top, p.committed = d.Number, d.Done, d.Done
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
		p.log = slices.Insert(p.log, i, r)
	}
}

// begin takes over what the processes agree on when an epoch begins. It returns those that asked
// to take part, and now do.
func (p *Process) begin(epoch uint64, b *Bulk) (comers []protocol.ID) {
	p.epoch, p.owner, p.blocked, p.proposed = epoch, b.Owner, false, false
	p.missed = 0
	clear(p.votes)
	p.logged.Clear()
	copy(p.granted, b.Granted)
	p.requests = append(p.requests[:0], b.Requests...)
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

// settle is what the new epoch means for the user.
func (p *Process) settle(out *protocol.Out[Message]) {
	switch {
	case p.owner != p.id:
		p.eject(out)
		p.askAgain(out)
	case p.phase == requesting: // it enters
	case p.phase == issuing: // not executed, and dropped with the epoch
		p.invoke(out)
	case p.phase != inside:
		p.release(out)
	}
}

// endAgain ends an epoch that has just begun, where its owner is suspected, or somebody asked
// too late to take part in it. If that is the owner it is not to own the next one: see proposal.
func (p *Process) endAgain(out *protocol.Out[Message]) {
	switch late := slices.ContainsFunc(p.wishes, func(w uint64) bool { return w > 0 }); {
	case p.suspected.Has(p.owner):
		p.end(p.id, out)
	case late:
		p.end(p.owner, out)
	}
}

// eject tells a user inside that the token is gone.
func (p *Process) eject(out *protocol.Out[Message]) {
	if p.phase == inside || p.phase == issuing {
		p.phase, p.op = lost, ""
		out.Ejected()
	}
}

// askAgain asks for the token anew where the new epoch does not know of it. The request has a new
// number, because the old one may have been granted by a record that is not here.
func (p *Process) askAgain(out *protocol.Out[Message]) {
	if p.phase == requesting && !slices.Contains(p.requests, Claim{p.id, p.request}) {
		p.request++
		p.ask(out)
	}
}
