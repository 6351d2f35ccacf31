package wme

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// joined: this process takes part. A later life does not before it has got the state of an epoch that counts on it.
func (p *Process) joined() bool { return p.lives[p.id] == p.life }

// progress tells how far this process is; or, of one that is to join, its life.
func (p *Process) progress() Message {
	if !p.joined() {
		return Message{Kind: Sync, ID: p.life}
	}
	return Message{Kind: Sync, Epoch: p.curEp, Number: p.curSN, Done: p.executed}
}

// sync asks all others for what is missing here.
func (p *Process) sync(out *protocol.Out[Message]) { out.Broadcast(p.progress()) }

// restore: what was sent to each other may be lost, while j was suspected or because it is a new
// life.
func (p *Process) restore(j protocol.ID, out *protocol.Out[Message]) {
	p.suspected.Remove(j)
	switch {
	case p.late: // who knew the decision that is missing may be the one that has come back without it
		p.sync(out)
	case p.heal || !p.joined() || !p.current():
		out.Send(j, p.progress())
	}
	p.askAnother(j, out) // it was a life before that was asked
}

// askAnother asks all for the state again, where a process that was asked does not send it: offers of
// others were not taken meanwhile.
func (p *Process) askAnother(j protocol.ID, out *protocol.Out[Message]) {
	if p.asked.Has(j) {
		p.asked.Remove(j)
		p.sync(out)
	}
}

// onHealing takes a message of those that heal: of any epoch.
func (p *Process) onHealing(from protocol.ID, m Message, out *protocol.Out[Message]) {
	switch {
	case m.Kind == Ahead:
		p.onAhead(from, m, out)
	case m.Kind == State:
		p.onState(from, m, out)
	case m.Kind == Sync && m.ID > 0:
		p.onJoin(from, m.ID, out)
	case !p.joined(): // it has nothing to give, and no use for records
		if m.Kind == Fetch {
			out.Send(from, p.progress())
		}
	case m.Kind == Sync && m.Epoch > p.curEp: // what it lacks may be what the decision says here
		p.store(early{from, m})
	case m.Kind == Sync:
		p.onSync(from, m, out)
	case m.Kind == Records:
		p.onRecords(from, m, out)
	case m.Kind == Fetch:
		p.fetchers.Add(from)
		p.hand(out)
	}
}

// onJoin: a later life of a process is to take part. What the life before has logged is
// forgotten, so it does so from the next epoch on, whose votes do not count on it.
func (p *Process) onJoin(from protocol.ID, life uint64, out *protocol.Out[Message]) {
	p.askAnother(from, out)
	switch {
	case !p.joined():
		return
	case life <= p.lives[from]:
		p.ahead(from, out)
		return
	}
	p.wishes[from] = max(p.wishes[from], life)
	if !p.block {
		p.endAgain(out)
	}
}

// onSync tells a process what it has not got, as far as this one has it.
func (p *Process) onSync(from protocol.ID, m Message, out *protocol.Out[Message]) {
	behind := m.Epoch == p.curEp && !p.block && m.Number < p.curSN
	if m.Done < p.executed || behind {
		p.tell(from, m.Done, out)
	}
	switch {
	case m.Epoch < p.curEp && !p.heal:
		return
	case m.Epoch < p.curEp: // what was sent to it since may be lost, too
		p.ahead(from, out)
	}
	p.learn(from, m.Done)
	if p.block {
		out.Send(from, p.votes[p.id])
		return
	}
	if p.state == requesting && p.curOwner != p.id {
		out.Send(from, Message{Kind: Request, Epoch: p.curEp, ID: p.reqID, Done: p.executed})
	}
	if p.committed < p.top && (p.acks == toAll || p.curOwner == from) {
		out.Send(from, Message{Kind: Ack, Epoch: p.curEp, Number: p.top, Done: p.executed})
	}
}

// tell sends operations after one that was executed, and who has the token; or it says that not all
// of them are here any more. The last one is always sent, unless it is committed: a process that is told of the
// last record votes as if it had logged it.
func (p *Process) tell(to protocol.ID, after uint64, out *protocol.Out[Message]) {
	i, _ := p.find(after + 1)
	if missing := i == len(p.opHist) && after < p.executed; missing || i < len(p.opHist) && p.opHist[i].Before != after {
		p.ahead(to, out)
		return
	}
	some := slices.Clone(p.opHist[i:min(i+p.carry, len(p.opHist))])
	if p.committed < p.top && i+p.carry < len(p.opHist) {
		some = append(some, p.opHist[len(p.opHist)-1])
	}
	out.Send(to, Message{Kind: Records, Epoch: p.curEp, Number: p.curSN, Done: p.committed, More: &Bulk{
		Owner:   p.curOwner,
		Records: some,
		Granted: slices.Clone(p.granted),
	}})
}

// onRecords logs operations that are missing. Those of this epoch bring it up to date with who
// has sent them.
func (p *Process) onRecords(from protocol.ID, m Message, out *protocol.Out[Message]) {
	committed := p.committed
	for _, r := range m.More.Records {
		if r.Number <= min(p.top, m.Done) {
			p.fill(r)
		}
	}
	switch {
	case m.Epoch != p.curEp || p.block:
	case m.Number > p.curSN:
		p.catchUp(m, out)
	default: // an acknowledgement may be lost
		p.commit(min(m.Done, p.top), out)
	}
	p.execute(out)
	switch some := m.More.Records; {
	case p.current():
	case p.committed > committed: // the sender may lack them, too
		p.sync(out)
	case len(some) > 0 && some[0].Number <= p.executed: // it may have more
		out.Send(from, p.progress())
	}
}

// catchUp takes over what the records of this epoch have led to: all up to those of the message
// but operations that are missing, which are committed.
func (p *Process) catchUp(m Message, out *protocol.Out[Message]) {
	top := m.Done
	for _, r := range m.More.Records {
		if r.Number > p.top {
			p.opHist = append(p.opHist, r)
		}
		top = max(top, r.Number)
	}
	p.curSN, p.top, p.committed = m.Number, max(p.top, top), max(p.committed, m.Done)
	for j, id := range m.More.Granted {
		p.serve(Claim{protocol.ID(j), id})
	}
	p.logged.Clear()
	p.execute(out)
	if p.committed < p.top { // it is new here: who had it would know from the number that it is committed
		p.acknowledge(m.More.Owner, out)
	}
	p.own(m.More.Owner, out)
}

// ahead offers the state to a process that cannot go on without.
func (p *Process) ahead(to protocol.ID, out *protocol.Out[Message]) {
	out.Send(to, Message{Kind: Ahead, Epoch: p.curEp, Number: p.curSN, Done: p.executed})
}

// lacks: the state of a process that is as far as m says would help this one. What was executed
// in an epoch before this one is committed, and part of what this one began with. Where only decisions
// are missing they come by consensus, unless nobody knows them any more: then it hears Restore again.
func (p *Process) lacks(m Message) bool {
	return !p.joined() || m.Done > p.executed || p.late && m.Epoch > p.curEp
}

// onAhead asks for the state, once.
func (p *Process) onAhead(from protocol.ID, m Message, out *protocol.Out[Message]) {
	if p.lacks(m) && p.asked.Len() == 0 && !p.suspected.Has(from) {
		p.asked.Add(from)
		out.Send(from, Message{Kind: Fetch})
	}
	switch {
	case !p.heal:
	case m.Epoch > p.curEp:
		p.late = true
	case m.Epoch == p.curEp && m.Number > p.curSN && !p.block && !p.lacks(m): // it may be records alone
		out.Send(from, p.progress())
	}
}

// hand gets the copy of the object for those that wait for it, once it is what the records
// known here make of it.
func (p *Process) hand(out *protocol.Out[Message]) {
	if p.current() && p.fetchers.Len() > 0 {
		out.Capture()
	}
}

// captured sends the state. Where operations are missing that were decided since the copy was asked
// for, it waits until it is asked for again: who installed less than the epoch has would vote for that.
func (p *Process) captured(object string, out *protocol.Out[Message]) {
	if !p.current() {
		return
	}
	i, _ := p.find(p.executed + 1)
	b := p.bulk(p.opHist[i:])
	b.Last, b.Object = slices.Clone(p.last), object
	for j := range p.fetchers.All() {
		out.Send(j, Message{Kind: State, Epoch: p.curEp, Number: p.curSN, Done: p.executed, More: b})
	}
	p.fetchers.Clear()
}

// onState takes the state over.
func (p *Process) onState(from protocol.ID, m Message, out *protocol.Out[Message]) {
	switch {
	case !p.lacks(m), !p.joined() && m.More.Lives[p.id] != p.life: // for a life before
	case m.Done > p.top && (m.Epoch < p.curEp || p.block && m.Epoch == p.curEp):
		p.asked.Remove(from) // it has voted for what it has: the decision says more, and then it asks again
		return
	case m.Epoch <= p.curEp:
		p.update(from, m, out)
	default:
		p.asked.Remove(from)
		p.install(m, out)
	}
	p.askAnother(from, out) // others have offered more, perhaps, while this one was waited for
}

// update takes the object: this process has heard of every epoch.
func (p *Process) update(from protocol.ID, m Message, out *protocol.Out[Message]) {
	p.take(m, out)
	i, _ := p.find(m.Done + 1)
	p.opHist = slices.Delete(p.opHist, 0, i)
	p.committed = max(p.committed, m.Done)
	p.top = max(p.top, m.Done)
	p.onRecords(from, m, out)
}

// take makes the copy of the object that of who has sent the state. An operation of this process
// may be in it.
func (p *Process) take(m Message, out *protocol.Out[Message]) {
	out.Install(m.More.Object)
	p.executed = m.Done
	copy(p.last, m.More.Last)
	p.outcome(p.id, p.last[p.id], out)
	p.learn(p.id, p.executed)
}

// install makes this process one of the epoch of who has sent the state. What was decided
// before is not known here: the user may have lost the token meanwhile.
func (p *Process) install(m Message, out *protocol.Out[Message]) {
	out.Resume(m.Epoch)
	p.take(m, out)
	p.late = false
	p.opHist = slices.Clone(m.More.Records)
	p.curSN, p.committed, p.top = m.Number, m.Done, m.Done
	if k := len(p.opHist); k > 0 {
		p.top = p.opHist[k-1].Number
	}
	comers := p.begin(m.Epoch, m.More)
	p.reqID = max(p.reqID, p.granted[p.id])
	p.operation = max(p.operation, p.last[p.id])
	p.eject(out)
	p.settle(out)
	if p.committed < p.top {
		p.acknowledge(p.curOwner, out)
	}
	for _, j := range comers {
		p.ahead(j, out)
	}
	p.hand(out)
	p.sync(out)
	p.endAgain(out)
}
