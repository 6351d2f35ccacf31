package recovery

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// onNotify keeps what a member says of its sessions. Without a number it refuses a RESTART
// because of a newer one, and says whether it is in an instance.
func (p *Process[M]) onNotify(from protocol.ID, f Frame[M]) {
	if f.Note.Number > 0 {
		p.hear(from, f)
		return
	}
	if p.lead.members.has(from) && !f.Epoch.Before(p.lead.epoch) {
		p.drop()
	}
	if e := p.peers[from].joins; f.Note.Old && e != nil && !f.Epoch.Before(*e) {
		p.peers[from].joins = nil
	}
}

// hear takes what from says of its sessions, unless something newer came before.
func (p *Process[M]) hear(from protocol.ID, f Frame[M]) {
	q := &p.peers[from]
	if q.said == nil || q.said.number < f.Note.Number || q.said.number == f.Note.Number && q.said.epoch.Before(f.Epoch) {
		q.said = &statement{f.Epoch, f.Note.Number, f.Note.Since}
	}
}

// onJoin: from is in no instance, and the last one it was in was that of epoch e.
func (p *Process[M]) onJoin(from protocol.ID, e protocol.Epoch) {
	q := &p.peers[from]
	if q.joins == nil || q.joins.Before(e) {
		q.joins = &e
	}
	if p.lead.members.has(from) && !e.Before(p.lead.epoch) {
		p.drop()
	}
}

// restart begins a new instance if that is due: the present one is broken, or somebody
// would like to join.
func (p *Process[M]) restart(out *protocol.Out[Frame[M]]) bool {
	orphan := p.active && p.loose() && !p.here().has(p.epoch.Leader) && p.reach().first() == p.id
	if p.coordinator() != p.id && !orphan {
		return false
	}
	if !p.active && slices.ContainsFunc(p.peers, func(q peer) bool { return q.asks != nil }) {
		return false // it joins what others begin before it begins anything
	}
	members, joins := only(p.id), set(0)
	for j := range (p.reach() &^ only(p.id)).all {
		switch {
		case p.outside(j):
			joins |= only(j)
		case !p.active || !p.members.has(j):
		case p.peers[j].said == nil:
			return false // it is about to say which sessions it has
		default:
			members |= only(j)
		}
	}
	for a := range members.all {
		for b := range (members &^ only(a)).all {
			if p.says(a, b) && !p.says(b, a) {
				return false // a is about to say so, too, or it has crashed
			}
		}
	}
	members = p.connected(members)
	target := members | joins
	switch l := &p.lead; {
	case !p.majority(target):
		return false
	case p.holds() && (l.done != l.members || l.serving || target&^l.members == 0):
		return false
	}
	p.seen++
	p.begin(protocol.Epoch{Round: p.seen, Leader: p.id}, target, joins)
	for j := range joins.all {
		p.restartTo(j, out)
	}
	if joins == 0 {
		p.askRest(out)
	}
	return true
}

// holds reports whether the instance that this process began last is still whole: each
// session among its members has lasted since what it is based on.
func (p *Process[M]) holds() bool {
	l := &p.lead
	if l.epoch == (protocol.Epoch{}) {
		return false
	}
	for a := range (l.members &^ only(p.id)).all {
		others := l.members &^ only(a)
		if !l.done.has(a) {
			others &^= l.joins // of whom it may not have known
		}
		if (l.joins &^ l.done).has(a) {
			continue // it has said nothing yet
		}
		if p.left(a) {
			return false
		}
		for b := range others.all {
			if s := p.peers[a].said.since[b]; s == 0 || s > l.based[a] {
				return false
			}
		}
	}
	return true
}

// connected returns a set of members each of which has a session with each other one:
// whoever lacks most of them is left out, the largest id of several, and this process never.
func (p *Process[M]) connected(s set) set {
	for {
		worst, fewest := p.id, s.len()
		for a := range (s &^ only(p.id)).all {
			links := 1 // with itself
			for b := range (s &^ only(a)).all {
				if p.says(a, b) {
					links++
				}
			}
			if links < s.len() && links <= fewest {
				worst, fewest = a, links
			}
		}
		if worst == p.id {
			return s
		}
		s &^= only(worst)
	}
}

// says reports whether a says that it has a session with b. With this process all of them
// have one.
func (p *Process[M]) says(a, b protocol.ID) bool {
	return a == p.id || b == p.id || p.peers[a].said.since[b] > 0
}

// drop forgets the instance that this process leads.
func (p *Process[M]) drop() { p.lead, p.peers[p.id].asks = lead{}, nil }

// begin makes an instance the one that this process leads.
func (p *Process[M]) begin(e protocol.Epoch, members, joins set) {
	p.drop()
	p.tried = e
	guests := joins
	if p.active && !p.proven {
		guests |= p.guests & members
	}
	p.lead = lead{epoch: e, members: members, joins: joins, guests: guests, based: make([]uint64, p.n), wants: make([]protocol.Groups, p.n)}
	for j := range (members &^ joins &^ only(p.id)).all {
		p.lead.based[j] = p.peers[j].said.number
	}
}

func (p *Process[M]) restartTo(j protocol.ID, out *protocol.Out[Frame[M]]) {
	l := &p.lead
	out.Send(j, Frame[M]{Kind: Restart, Epoch: l.epoch, Note: &Note{Number: l.based[j], Set: l.members, Joins: l.joins, Guests: l.guests}})
}

// askRest asks those for a DONE who did not have to come first.
func (p *Process[M]) askRest(out *protocol.Out[Frame[M]]) {
	l := &p.lead
	l.asked = true
	for j := range (l.members &^ l.joins &^ only(p.id)).all {
		p.restartTo(j, out)
	}
	p.peers[p.id].asks = &Frame[struct{}]{Kind: Restart, Epoch: l.epoch, Note: &Note{Set: l.members, Joins: l.joins, Guests: l.guests}}
}

func (p *Process[M]) onDone(from protocol.ID, f Frame[M], out *protocol.Out[Frame[M]]) {
	p.hear(from, f)
	if f.Epoch == p.lead.epoch {
		p.lead.based[from] = f.Note.Number
		p.done(from, f.Note.Old, f.Note.Groups, out)
	}
}

// done ends the first phase when all have joined.
func (p *Process[M]) done(from protocol.ID, old bool, wants string, out *protocol.Out[Frame[M]]) {
	l := &p.lead
	l.done |= only(from)
	if old {
		l.request |= only(from)
		l.wants[from] = protocol.Groups(wants)
	}
	switch {
	case l.done == l.members:
		p.serve(out)
	case !l.asked && l.done == l.joins:
		p.askRest(out)
	}
}

// serve begins the second phase: those with old requests enter group by group, each group
// after the LEAVEs of the one before.
func (p *Process[M]) serve(out *protocol.Out[Frame[M]]) {
	l := &p.lead
	p.proven = true
	var mine *Note
	g, q := p.best(l.request)
	for before := 0; q != 0; {
		n := &Note{Number: uint64(before), Set: only(p.id), Groups: string(g)}
		l.request &^= q
		next, then := p.best(l.request)
		if then != 0 {
			n.Set = then
		} else {
			l.await = q
		}
		for j := range q.all {
			if j == p.id {
				mine = n
				continue
			}
			out.Send(j, Frame[M]{Kind: Start, Epoch: l.epoch, Note: n})
		}
		g, q, before = next, then, q.len()
	}
	clear(l.wants)
	switch l.serving = l.await != 0; {
	case !l.serving:
		p.resume(out)
	case mine != nil:
		p.onStart(mine, out)
	}
}

// best returns, of the groups that the first one of rest wants, one that most of rest want,
// and who they are. A group that is not shared is wanted by one.
func (p *Process[M]) best(rest set) (best protocol.Group, who set) {
	if rest == 0 {
		return "", 0
	}
	first := rest.first()
	for g := range p.lead.wants[first].All() {
		q := only(first)
		for j := range (rest &^ q).all {
			if g.Shares(g) && p.lead.wants[j].Has(g) {
				q |= only(j)
			}
		}
		if q.len() > who.len() {
			best, who = g, q
		}
	}
	return best, who
}

// resume begins the third phase.
func (p *Process[M]) resume(out *protocol.Out[Frame[M]]) {
	p.lead.serving = false
	if p.phases < 3 {
		p.frozen = false
		p.ask(out)
		p.deliver(out)
		return
	}
	for j := range (p.members &^ only(p.id)).all {
		out.Send(j, Frame[M]{Kind: Resume, Epoch: p.epoch})
	}
	p.onResume(out)
}

func (p *Process[M]) onResume(out *protocol.Out[Frame[M]]) {
	if p.section == protocol.InCrit || p.old.pending {
		panic("recovery: RESUME before the old requests were served")
	}
	p.running = true
	p.ask(out)
}

func (p *Process[M]) onStart(n *Note, out *protocol.Out[Frame[M]]) {
	if !p.old.pending {
		panic("recovery: START without an old request")
	}
	p.old.started, p.old.before, p.old.next, p.old.group = true, n.Number, n.Set, n.Groups
	p.enter(out)
}

// onLeave counts a LEAVE, which is either one of the last ones, to the coordinator, or one
// that an old request waits for.
func (p *Process[M]) onLeave(from protocol.ID, out *protocol.Out[Frame[M]]) {
	if l := &p.lead; l.epoch == p.epoch && l.await.has(from) {
		if l.await &^= only(from); l.await == 0 {
			p.resume(out)
		}
		return
	}
	p.old.leaves++
	p.enter(out)
}

// enter grants an old request when its turn has come.
func (p *Process[M]) enter(out *protocol.Out[Frame[M]]) {
	if p.old.started && p.old.leaves == p.old.before {
		p.old.pending, p.old.started, p.byOld, p.section = false, false, true, protocol.InCrit
		out.CritIn(protocol.Group(p.old.group), 0)
	}
}
