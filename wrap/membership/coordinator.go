package membership

import (
	"github.com/poundlock/poundlock/protocol"
)

// onNotify keeps a status. A NOTIFY without a number refuses a RESTART because of a newer
// instance, or asks this process to leave its own.
func (p *Process[M]) onNotify(from protocol.ID, f Frame[M]) {
	switch {
	case f.Note.Number > 0:
		p.hear(from, f)
	case f.Note.Old:
		p.stray = p.stray || p.active && p.epoch == f.Epoch
	case p.lead.members.has(from) && p.lead.epoch.Before(f.Epoch):
		p.drop()
	}
}

// restart begins a new instance if that is due: the present one is broken, or somebody
// would like to join.
func (p *Process[M]) restart(out *protocol.Out[Frame[M]]) bool {
	if !p.due {
		return false
	}
	p.due = false
	l, holds := &p.lead, p.holds()
	waits := holds && l.done != l.members
	if p.coordinator() != p.id || waits && p.active {
		return false
	}
	inside, joins, slow, silent, named := set{}, set{}, set{}, set{}, p.members
	for j := range p.reach().all {
		switch s := p.peers[j].said; {
		case j == p.id:
		case s == nil:
			silent = silent.with(j)
		case s.members.empty():
			if joins = joins.with(j); s.asked {
				slow = slow.with(j)
			}
		default:
			inside, named = inside.with(j), named.or(s.members)
		}
	}
	if p.active {
		silent = silent.and(named)
	}
	if !silent.empty() || waits && joins.minus(l.members).empty() { // they are about to say where they are
		return false
	}
	if p.sendAway(inside, out) {
		return true
	}
	for a := range inside.all {
		for b := range inside.without(a).all {
			if p.says(a, b) && !p.says(b, a) {
				return false // a is about to say so, too, or it has crashed
			}
		}
	}
	inside = p.connected(inside)
	target := inside.or(joins).with(p.id)
	if rest := target.minus(slow); p.active && p.majority(rest) {
		target, joins = rest, joins.minus(slow) // who may lack a session holds up nobody
	}
	if !p.majority(target) || holds && target.minus(l.members).empty() || !p.active && p.intact(inside, target) {
		return false
	}
	p.seen = p.nextRound()
	p.begin(protocol.Epoch{Round: p.seen, Leader: p.id}, target, joins)
	for j := range joins.all {
		p.peers[j].said.asked = true
		p.restartTo(j, out)
	}
	if joins.empty() {
		p.askRest(out)
	}
	return true
}

// sendAway asks who lacks most of the others as members to leave its instance: it does not say
// every change of its sessions with them. It reports whether there is somebody.
func (p *Process[M]) sendAway(inside set, out *protocol.Out[Frame[M]]) bool {
	worst, most := p.id, 0
	for a := range inside.all {
		strangers := 0
		for b := range inside.all {
			if !p.peers[a].said.members.has(b) {
				strangers++
			}
		}
		if strangers >= most {
			worst, most = a, strangers
		}
	}
	if most == 0 {
		return false
	}
	if s := p.peers[worst].said; !s.stray {
		s.stray = true
		out.Send(worst, Frame[M]{Kind: Notify, Epoch: s.epoch, Note: &Note{Old: true}})
	}
	return true
}

// intact reports whether those inside have lost nobody and target is not all of them: whoever
// comes from outside does not take a part away from an instance that is whole.
func (p *Process[M]) intact(inside, target set) bool {
	all := true
	for a := range inside.all {
		for b := range p.peers[a].said.members.without(a).all {
			if !p.says(a, b) {
				return false
			}
			all = all && target.has(b)
		}
	}
	return !all
}

// holds reports whether nothing is known that breaks the instance that this process began
// last: each session among its members has lasted since what it is based on.
func (p *Process[M]) holds() bool {
	l := &p.lead
	for a := range l.members.without(p.id).all {
		s, others := p.peers[a].said, l.members.without(a)
		switch {
		case l.done.has(a):
			if s.epoch != l.epoch || s.members.empty() {
				return false // it has left
			}
		case s.number == l.based[a]:
			continue // it has said nothing yet
		case s.members.empty() || l.joins.has(a):
			return false // it has left something else, or joined it
		default: // it may not know those who join, but is to say every change with the others
			if others = others.minus(l.joins); !others.without(p.id).minus(s.members).empty() {
				return false
			}
		}
		for b := range others.all {
			if t := s.since[b]; t == 0 || t > l.based[a] {
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
		for a := range s.without(p.id).all {
			links := 1 // with itself
			for b := range s.without(a).all {
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
		s = s.without(worst)
	}
}

// says reports whether a, another process, says that it has a session with b.
func (p *Process[M]) says(a, b protocol.ID) bool {
	return p.peers[a].said.since[b] > 0
}

// drop forgets the instance that this process leads.
func (p *Process[M]) drop() { p.lead, p.peers[p.id].asks, p.due = lead{}, nil, true }

// begin makes an instance the one that this process leads.
func (p *Process[M]) begin(e protocol.Epoch, members, joins set) {
	p.drop()
	p.lead = lead{epoch: e, members: members, joins: joins, based: make([]uint64, p.n), wants: make([]protocol.Groups, p.n)}
	for j := range members.without(p.id).all {
		p.lead.based[j] = p.peers[j].said.number
	}
}

func (p *Process[M]) restartTo(j protocol.ID, out *protocol.Out[Frame[M]]) {
	l := &p.lead
	out.Send(j, Frame[M]{Kind: Restart, Epoch: l.epoch, Note: &Note{Number: l.based[j], Set: l.members, Joins: l.joins}})
}

// askRest asks those for a DONE who did not have to come first.
func (p *Process[M]) askRest(out *protocol.Out[Frame[M]]) {
	l := &p.lead
	l.asked = true
	for j := range l.members.minus(l.joins).without(p.id).all {
		p.restartTo(j, out)
	}
	p.peers[p.id].asks = &Frame[struct{}]{Kind: Restart, Epoch: l.epoch, Note: &Note{Set: l.members, Joins: l.joins}}
}

func (p *Process[M]) onDone(from protocol.ID, f Frame[M], out *protocol.Out[Frame[M]]) {
	p.hear(from, f)
	if f.Epoch == p.lead.epoch {
		p.lead.based[from] = f.Note.Number
		p.done(from, f.Note, out)
	}
}

// done ends the first phase when all have joined.
func (p *Process[M]) done(from protocol.ID, n *Note, out *protocol.Out[Frame[M]]) {
	l := &p.lead
	l.done = l.done.with(from)
	if n.Old || n.Inside {
		l.request = l.request.with(from)
		l.wants[from] = protocol.Groups(n.Groups)
	}
	if n.Inside {
		l.inside = l.inside.with(from)
	}
	switch {
	case l.done == l.members:
		p.serve(out)
	case !l.asked && l.done == l.joins:
		p.askRest(out)
	}
}

// serve begins the second phase: those with old requests enter group by group, each group
// after the LEAVEs of the one before. The first one is that of those who are inside, if there are any.
func (p *Process[M]) serve(out *protocol.Out[Frame[M]]) {
	l := &p.lead
	for j := range p.peers {
		if s := p.peers[j].said; s != nil {
			s.asked = false
		}
	}
	var mine *Note
	g, q := p.best(l.request)
	if !l.inside.empty() {
		g, q = p.among()
	}
	for before := 0; !q.empty(); {
		n := &Note{Number: uint64(before), Set: only(p.id), Groups: string(g)}
		l.request = l.request.minus(q)
		next, then := p.best(l.request)
		if !then.empty() {
			n.Set = then
		} else {
			n.Old, p.turns.await = true, q
		}
		if n.Old && before == 0 && g.Shares(g) && p.phases == 3 {
			p.turns.group = string(g)
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
	l.inside = set{}
	switch {
	case p.turns.await.empty():
		p.resume(out)
	case mine != nil:
		p.onStart(mine, out)
	}
}

// among returns the group of those who are inside, and who may be there: they, and those with requests for it.
func (p *Process[M]) among() (g protocol.Group, who set) {
	l := &p.lead
	g, who = protocol.Group(l.wants[l.inside.first()]), l.inside
	for j := range l.request.minus(who).all {
		if g.Shares(g) && l.wants[j].Has(g) {
			who = who.with(j)
		}
	}
	return g, who
}

// best returns, of the groups that the first one of rest wants, one that most of rest want,
// and who they are. A group that is not shared is wanted by one.
func (p *Process[M]) best(rest set) (best protocol.Group, who set) {
	if rest.empty() {
		return "", set{}
	}
	first := rest.first()
	for g := range p.lead.wants[first].All() {
		q := only(first)
		for j := range rest.minus(q).all {
			if g.Shares(g) && p.lead.wants[j].Has(g) {
				q = q.with(j)
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
	p.turns = turns{}
	if p.phases < 3 {
		p.frozen = false
		p.ask(out)
		p.deliver(out)
		return
	}
	for j := range p.members.without(p.id).all {
		out.Send(j, Frame[M]{Kind: Resume, Epoch: p.epoch})
	}
	p.onResume(out)
}

func (p *Process[M]) onResume(out *protocol.Out[Frame[M]]) {
	if p.section == protocol.InCrit || p.old.pending {
		panic("recovery: RESUME before the old requests were served")
	}
	p.running, p.old = true, old{}
	p.ask(out)
}

func (p *Process[M]) onStart(n *Note, out *protocol.Out[Frame[M]]) {
	kept := p.old.kept
	if !p.old.pending && !p.old.late && !kept {
		panic("recovery: START without an old request")
	}
	p.old.pending, p.old.late, p.old.kept, p.old.started = true, false, false, true
	p.old.before, p.old.next, p.old.group, p.old.last = n.Number, n.Set, n.Groups, n.Old
	switch {
	case !kept:
		p.enter(out)
	case p.section == protocol.InCrit:
		p.base, p.old.pending = set{}, false
		p.besides(out)
	default:
		p.left(out)
		p.want(out) // should it have tried again
	}
}

// onLeave counts a LEAVE: of the last ones at the coordinator, and elsewhere an old request waits for it.
func (p *Process[M]) onLeave(from protocol.ID, out *protocol.Out[Frame[M]]) {
	t := &p.turns
	if !t.await.has(from) {
		p.old.leaves++
		p.enter(out)
		return
	}
	t.await = t.await.without(from)
	if t.late.has(from) {
		t.late = t.late.without(from)
		p.admit(from, t.wants[from], out)
	}
	if t.await.empty() {
		p.resume(out)
	}
}

// onWant is at the coordinator: a member's user has tried since it said DONE. Before all are DONE that is an old request like
// the others. Of its members the coordinator tells those who are inside that somebody waits who does not fit.
func (p *Process[M]) onWant(from protocol.ID, wants protocol.Groups, out *protocol.Out[Frame[M]]) {
	l, t := &p.lead, &p.turns
	switch {
	case p.epoch.Leader != p.id:
		p.old.closed = true
		p.wanted(out)
	case l.epoch == p.epoch && l.done != l.members:
		l.request = l.request.with(from)
		l.wants[from] = wants
	case t.await.has(from): // its LEAVE is about to come
		if t.late = t.late.with(from); t.wants == nil {
			t.wants = make([]protocol.Groups, p.n)
		}
		t.wants[from] = wants
	default:
		p.admit(from, wants, out)
	}
}

// admit lets in who has tried since, with those who are inside, unless somebody waits who does not fit.
func (p *Process[M]) admit(from protocol.ID, wants protocol.Groups, out *protocol.Out[Frame[M]]) {
	t := &p.turns
	switch {
	case t.group == "":
	case wants.Has(protocol.Group(t.group)):
		n := &Note{Set: only(p.id), Groups: t.group, Old: true}
		if t.await = t.await.with(from); from == p.id {
			p.onStart(n, out)
		} else {
			out.Send(from, Frame[M]{Kind: Start, Epoch: p.epoch, Note: n})
		}
	default:
		t.group = ""
		for j := range t.await.without(p.id).all {
			if p.w.inner.Tells {
				out.Send(j, Frame[M]{Kind: Want, Epoch: p.epoch, Note: &Note{}})
			}
		}
		p.wanted(out)
	}
}

// besides tells a user who is inside with an old request that others wait, or might without being heard of.
func (p *Process[M]) besides(out *protocol.Out[Frame[M]]) {
	if p.old.closed || !p.old.last || p.old.before > 0 || p.phases < 3 {
		p.wanted(out)
	}
}

// enter grants an old request when its turn has come.
func (p *Process[M]) enter(out *protocol.Out[Frame[M]]) {
	if p.old.started && p.old.leaves == p.old.before {
		p.old.pending, p.byOld, p.section, p.wants = false, true, protocol.InCrit, p.old.group
		out.CritIn(protocol.Group(p.old.group), p.oldToken())
		p.besides(out)
	}
}
