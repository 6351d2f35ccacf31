package recovery

import (
	"bytes"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// A Process is a member with its part in the present instance.
type Process[M any] struct {
	w       *wrapped[M]
	id      protocol.ID
	n       int
	options map[string]int64
	phases  int64
	tell    bool

	peers  []peer // by id; its own entry is never used, but for asks
	number uint64 // counts the changes of its sessions
	// counted are those that may count on this process: they were in an instance with it,
	// and their session with it lasts. It joins no instance without them.
	counted set
	seen    uint64 // the largest round heard of

	// The instance that it joined last; the zero epoch is that of a new life, which is alone.
	epoch   protocol.Epoch
	members set
	guests  set  // those of the members who were in no instance before
	proven  bool // it is known that all members have joined
	// active: since it joined it has had sessions, each without a break, with a majority of
	// all processes, itself among them, all of which are members. Those that still are:
	// linked. While it is not active it is in no instance.
	active  bool
	linked  set
	running bool                // it is not suspended
	frozen  bool                // of a coordinator with fewer than three phases: its own process waits
	inner   protocol.Process[M] // nil unless active
	news    uint64              // the number of the last change among members
	told    told
	old     old

	section protocol.Section
	wants   string // in InTry: the groups
	once    bool   // in InTry: TryOnce
	asked   bool   // in InTry: the algorithm knows
	byOld   bool   // in InCrit: as an old request

	lead  lead           // of a coordinator
	tried protocol.Epoch // the newest instance that this process began, which others may be in
	later []early[M]

	out protocol.Out[M]
}

// A peer is another process. All but session is of the present session.
type peer struct {
	session session
	revoked bool             // and not lapsed yet
	since   uint64           // the number since which the session is up
	joins   *protocol.Epoch  // of the newest JOIN from it
	said    *statement       // the newest one from it as a member; nil: none
	asks    *Frame[struct{}] // the newest RESTART from it
}

// A statement is what a member told its coordinator of its sessions.
type statement struct {
	epoch  protocol.Epoch // in which it was then
	number uint64
	since  []uint64
}

// A session is one with another process.
type session uint8

const (
	unknown session = iota // a new life: the life before may have had one
	up
	lapsed
	ended
)

// told is what a process said of its sessions last, and to whom.
type told struct {
	to     protocol.ID
	number uint64
}

// old is the old request of a process.
type old struct {
	pending bool // its user waits for START
	started bool
	before  uint64 // LEAVEs that it waits for
	leaves  uint64 // LEAVEs that came
	group   string
	next    set // who gets its LEAVE
}

// lead is the newest instance that this process began as a coordinator, while nothing is
// known that breaks it.
type lead struct {
	epoch   protocol.Epoch // zero: none
	members set
	joins   set      // the members that were in no instance: they answer before the others are asked
	guests  set      // these, and those who joined nothing that began
	asked   bool     // the others were
	based   []uint64 // by process: the number of what it had said
	done    set
	request set               // who has an old request,
	wants   []protocol.Groups // by process, for what
	serving bool              // old requests are being served
	await   set               // whose LEAVEs are the last ones
}

// early is a frame of an instance that this process is not in yet, or that its own
// process of the algorithm has to wait for.
type early[M any] struct {
	from protocol.ID
	f    Frame[M]
}

// Step implements protocol.Process.
func (p *Process[M]) Step(ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	switch ev.Kind {
	case protocol.Start:
		p.start(ev.Arg)
	case protocol.Try:
		p.try(ev.Data, ev.Arg == protocol.TryOnce, out)
	case protocol.Exit:
		p.exit(out)
	case protocol.Receive:
		p.receive(ev.From, ev.Msg, out)
	case protocol.Suspect:
		if ev.Arg == protocol.Lapsed {
			p.lapse(ev.From, out)
		} else {
			p.end(ev.From, out)
		}
	case protocol.Restore:
		p.restore(ev.From, out)
	default:
		panic("recovery: unexpected event")
	}
	p.settle(out)
}

func (p *Process[M]) majority(s set) bool { return 2*s.len() > p.n }

func (p *Process[M]) others() set { return (1<<p.n - 1) &^ only(p.id) }

// reach are the processes that it has sessions with, and itself.
func (p *Process[M]) reach() set {
	s := only(p.id)
	for j := range p.peers {
		if p.peers[j].session == up {
			s |= 1 << j
		}
	}
	return s
}

// start begins a life. The first lives of all are one instance from the start; a later one
// is alone until it is asked to join.
func (p *Process[M]) start(incarnation uint64) {
	p.number, p.counted = 1, p.others()
	if incarnation > 1 {
		p.members = only(p.id)
		return
	}
	first := protocol.Epoch{Round: 1}
	for j := range p.others().all {
		p.peers[j].session, p.peers[j].since = up, 1
		if p.id == first.Leader {
			s := &statement{epoch: first, number: 1, since: slices.Repeat([]uint64{1}, p.n)}
			s.since[j] = 0
			p.peers[j].said = s
		}
	}
	p.join(Frame[struct{}]{Epoch: first, Note: &Note{Set: p.others() | only(p.id)}})
	p.told = told{first.Leader, 1}
	p.running, p.proven = true, true
	if p.id == first.Leader {
		p.begin(first, p.members, 0)
		p.lead.asked, p.lead.done = true, p.members
	}
}

// Sessions.

// lapse: the session with j broke. Who loses a majority leaves its instance at once: those
// who go on without it wait for that.
func (p *Process[M]) lapse(j protocol.ID, out *protocol.Out[Frame[M]]) {
	p.change(j)
	p.peers[j] = peer{session: lapsed}
	p.linked &^= only(j)
	p.later = slices.DeleteFunc(p.later, func(e early[M]) bool { return e.from == j })
	if p.lead.members.has(j) {
		p.drop()
	}
	if p.active && !p.majority(p.linked) {
		p.leave(out)
	}
}

// end: j knows.
func (p *Process[M]) end(j protocol.ID, out *protocol.Out[Frame[M]]) {
	if p.peers[j].session == up {
		p.lapse(j, out)
	}
	p.peers[j].session = ended
	p.counted &^= only(j)
}

// restore: a new session with j begins. Who is in no instance says so, and to a member of
// its own one a process says that this is a new session.
func (p *Process[M]) restore(j protocol.ID, out *protocol.Out[Frame[M]]) {
	if p.peers[j].session == up {
		return // it was so from the start
	}
	p.change(j)
	p.peers[j] = peer{session: up, since: p.number}
	p.counted &^= only(j)
	switch {
	case p.loose():
		e := p.promised()
		if e == p.lead.epoch { // which goes on
			e = p.epoch
		}
		out.Send(j, Frame[M]{Kind: Join, Epoch: e})
	case p.members.has(j):
		p.notify(j, out)
	}
}

// loose reports whether it is in no instance, or a guest in one that may never have begun.
func (p *Process[M]) loose() bool { return !p.active || p.guests.has(p.id) && !p.proven }

func (p *Process[M]) notify(to protocol.ID, out *protocol.Out[Frame[M]]) {
	out.Send(to, Frame[M]{Kind: Notify, Epoch: p.epoch, Note: &Note{Number: p.number, Since: p.since()}})
}

// change counts a change of the session with j.
func (p *Process[M]) change(j protocol.ID) {
	p.number++
	if p.members.has(j) {
		p.news = p.number
	}
}

// since is what a NOTIFY or DONE says of its sessions.
func (p *Process[M]) since() []uint64 {
	s := make([]uint64, p.n)
	for j := range p.peers {
		s[j] = p.peers[j].since
	}
	return s
}

// leave gives up the instance.
func (p *Process[M]) leave(out *protocol.Out[Frame[M]]) {
	p.active, p.proven, p.running, p.frozen, p.guests, p.linked, p.inner = false, false, false, false, 0, 0, nil
	p.drop()
	p.old, p.told, p.news = old{}, told{}, 0
	p.later = slices.DeleteFunc(p.later, func(e early[M]) bool { return e.f.Epoch == p.epoch })
	switch p.section {
	case protocol.InCrit:
		p.section, p.byOld = protocol.InLost, false
		out.Ejected()
	case protocol.InExit:
		p.rem("", out)
	case protocol.InTry:
		p.asked = false
		p.refuse(out)
	}
	p.sayJoin(out)
}

// sayJoin tells all in reach that it is in no instance, nor in one that it began.
func (p *Process[M]) sayJoin(out *protocol.Out[Frame[M]]) {
	for j := range (p.reach() &^ only(p.id)).all {
		out.Send(j, Frame[M]{Kind: Join, Epoch: p.promised()})
	}
}

// promised is the newest instance that it joined or began: it joins none that another one
// began before.
func (p *Process[M]) promised() protocol.Epoch {
	if p.epoch.Before(p.tried) {
		return p.tried
	}
	return p.epoch
}

// outside reports whether j is in no instance, or was when this process heard of it last
// and is not known to have been taken into the present one. Guests are before the others.
func (p *Process[M]) outside(j protocol.ID) bool {
	e := p.peers[j].joins
	return e != nil && (p.loose() || !p.linked.has(j) || !e.Before(p.epoch) || p.left(j))
}

// left reports whether j has left the instance of which it said its sessions last.
func (p *Process[M]) left(j protocol.ID) bool {
	q := &p.peers[j]
	return q.joins != nil && q.said != nil && !q.joins.Before(q.said.epoch)
}

// coordinator is who restarts the instance: who began it, and without it the least of the
// members that are in reach and have not left. Guests come last: some of those who were
// members before may not have heard of them. Who is in no instance looks at all in reach.
func (p *Process[M]) coordinator() protocol.ID {
	if !p.active {
		if p.epoch.Before(p.tried) {
			return p.id // some may have joined what it began
		}
		return p.reach().first()
	}
	here := p.here()
	switch {
	case here.has(p.epoch.Leader):
		return p.epoch.Leader
	case here&^p.guests != 0:
		return (here &^ p.guests).first()
	}
	return here.first()
}

// here are the members in reach that have not left.
func (p *Process[M]) here() set {
	s := p.reach() & p.members
	for j := range p.peers {
		if e := p.peers[j].joins; e != nil && (!p.linked.has(protocol.ID(j)) || !e.Before(p.epoch)) {
			s &^= only(protocol.ID(j))
		}
	}
	return s
}

// settle does what is due after an event, until nothing is.
func (p *Process[M]) settle(out *protocol.Out[Frame[M]]) {
	for {
		if c := p.coordinator(); p.active && p.told != (told{c, p.news}) {
			p.told = told{c, p.news}
			if c != p.id {
				p.notify(c, out)
			}
		}
		if !p.answer(out) && !p.restart(out) {
			return
		}
	}
}

// answer answers a RESTART if one is due.
func (p *Process[M]) answer(out *protocol.Out[Frame[M]]) bool {
	for j := range p.peers {
		from, r := protocol.ID(j), p.peers[j].asks
		switch {
		case r == nil:
		case !p.epoch.Before(r.Epoch), from != p.id && !p.tried.Before(r.Epoch):
			p.peers[j].asks = nil
			p.refuseRestart(from, out)
		case p.broken(from, r):
			p.peers[j].asks = nil
		case p.ready(from, r, out):
			p.peers[j].asks = nil
			p.accept(from, *r, out)
			return true
		}
	}
	return false
}

// broken reports whether it is in vain to wait until this process is ready: somebody has
// left the instance already, or among those who were members before, a session has not
// lasted since this process said what the RESTART is based on, of which its coordinator is
// about to hear.
func (p *Process[M]) broken(from protocol.ID, r *Frame[struct{}]) bool {
	n := r.Note
	for j := range (n.Joins &^ only(p.id)).all {
		if e := p.peers[j].joins; e != nil && !e.Before(r.Epoch) {
			return true
		}
	}
	if from == p.id || n.Joins.has(p.id) {
		return false
	}
	for j := range (n.Set &^ n.Joins &^ only(p.id)).all {
		if s := p.peers[j].since; s == 0 || s > n.Number {
			return true
		}
	}
	return false
}

// ready reports whether this process may join: its user is not inside, it has a session
// with each member and knows of those who join that they do, and nobody who is left out
// counts on it.
func (p *Process[M]) ready(from protocol.ID, r *Frame[struct{}], out *protocol.Out[Frame[M]]) bool {
	n := r.Note
	if n.Set&^p.reach() != 0 || !p.heeds(from) {
		return false
	}
	for j := range (n.Joins &^ p.linked &^ only(p.id)).all {
		q := &p.peers[j]
		if (q.joins == nil || !q.joins.Before(r.Epoch)) && (q.said == nil || !q.said.epoch.Before(r.Epoch)) {
			return false
		}
	}
	if rest := p.counted &^ n.Set; rest != 0 {
		for j := range (rest & p.reach()).all {
			if !p.peers[j].revoked {
				p.peers[j].revoked = true
				out.Revoke(j)
			}
		}
		return false
	}
	return p.section != protocol.InCrit
}

// heeds reports whether a RESTART from that coordinator is for this process to answer.
func (p *Process[M]) heeds(from protocol.ID) bool {
	return p.loose() || !p.proven && !p.here().has(p.epoch.Leader) || from == p.coordinator()
}

// accept joins the instance of a RESTART, and says so.
func (p *Process[M]) accept(from protocol.ID, r Frame[struct{}], out *protocol.Out[Frame[M]]) {
	if p.section == protocol.InExit {
		p.rem("", out)
	}
	if p.epoch.Before(p.tried) && from != p.id {
		p.sayJoin(out) // for those who joined what it began
	}
	p.joinsToo(r.Note.Joins, out)
	before := p.epoch.Leader
	if !p.active || !p.linked.has(before) {
		before = from
	}
	p.join(r)
	if before != from && before != p.id {
		p.refuseRestart(before, out) // it may still count on this process
	}
	p.told = told{from, p.news}
	if from != p.id {
		if p.lead.epoch.Before(r.Epoch) {
			p.drop()
		}
		n := &Note{Number: p.number, Since: p.since(), Old: p.old.pending}
		if n.Old {
			n.Groups = p.wants
		}
		out.Send(from, Frame[M]{Kind: Done, Epoch: p.epoch, Note: n})
	}
	p.running = p.phases < 3
	p.frozen = p.running && from == p.id
	p.ask(out)
	p.deliver(out)
	if from == p.id {
		p.done(p.id, p.old.pending, p.wants, out)
	}
}

// join makes the instance of a RESTART the present one.
func (p *Process[M]) join(r Frame[struct{}]) {
	p.epoch, p.members, p.guests, p.active, p.proven = r.Epoch, r.Note.Set, r.Note.Guests, true, false
	p.seen = max(p.seen, p.epoch.Round)
	p.linked, p.counted, p.news = p.members, p.members&^only(p.id), p.number
	p.running, p.frozen, p.asked = false, false, false
	p.old = old{pending: p.section == protocol.InTry && p.phases > 1}
	p.inner = p.w.inner.New(p.rank(p.id), p.config(p.members.len()))
	p.give(protocol.Input{Kind: protocol.Start}, *new(M), nil)
}

// deliver gives the frames that came before their time.
func (p *Process[M]) deliver(out *protocol.Out[Frame[M]]) {
	frames := p.later
	p.later = nil
	for _, e := range frames {
		p.receive(e.from, e.f, out)
	}
}

// receive handles a frame. One of an older instance is dropped, and so is one from a
// member whose session has not lasted since this process joined: what was lost in between
// would make a gap.
func (p *Process[M]) receive(from protocol.ID, f Frame[M], out *protocol.Out[Frame[M]]) {
	p.seen = max(p.seen, f.Epoch.Round)
	switch f.Kind {
	case Notify:
		p.onNotify(from, f)
		return
	case Join:
		p.onJoin(from, f.Epoch)
		return
	case Restart:
		p.onRestart(from, f, out)
		return
	case Done:
		p.onDone(from, f, out)
		return
	}
	switch {
	case p.epoch.Before(f.Epoch), p.epoch == f.Epoch && p.frozen && f.Kind == Inner:
		p.wait(from, f)
		return
	case f.Epoch != p.epoch || !p.linked.has(from):
		return
	case f.Kind != Inner || from == p.epoch.Leader:
		p.proven = true // a coordinator sends none of these before
	}
	switch f.Kind {
	case Inner:
		p.give(protocol.Input{Kind: protocol.Receive, From: p.rank(from)}, f.Msg, out)
	case Start:
		p.onStart(f.Note, out)
	case Leave:
		p.onLeave(from, out)
	case Resume:
		p.onResume(out)
	}
}

// wait keeps a frame until its time: of one sender in the order of their coming where the
// algorithm needs that, and else in one that does not depend on it.
func (p *Process[M]) wait(from protocol.ID, f Frame[M]) {
	at := len(p.later)
	for at > 0 && p.after(p.later[at-1], early[M]{from, f}) {
		at--
	}
	p.later = slices.Insert(p.later, at, early[M]{from, f})
}

func (p *Process[M]) after(a, b early[M]) bool {
	if a.from != b.from || p.w.inner.FIFO {
		return a.from > b.from
	}
	return bytes.Compare(p.w.append(nil, a.f), p.w.append(nil, b.f)) > 0
}

// onRestart keeps the newest RESTART of each coordinator. One that comes too late is
// answered with what is the newest epoch here.
func (p *Process[M]) onRestart(from protocol.ID, f Frame[M], out *protocol.Out[Frame[M]]) {
	switch r := p.peers[from].asks; {
	case !p.promised().Before(f.Epoch):
		p.refuseRestart(from, out)
	case r == nil || r.Epoch.Before(f.Epoch):
		p.peers[from].asks = &Frame[struct{}]{Kind: Restart, Epoch: f.Epoch, Note: f.Note}
		if p.heeds(from) {
			p.joinsToo(f.Note.Joins, out)
		}
	}
}

// joinsToo says to those who join that this process does, where they do not know that: its
// coordinator has lost sight of the instance that it is in.
func (p *Process[M]) joinsToo(joins set, out *protocol.Out[Frame[M]]) {
	if !p.active || !joins.has(p.id) {
		return
	}
	for j := range (joins & p.reach() &^ only(p.id)).all {
		out.Send(j, Frame[M]{Kind: Join, Epoch: p.promised()})
	}
}

// refuseRestart tells a coordinator of a newer instance than its own.
func (p *Process[M]) refuseRestart(from protocol.ID, out *protocol.Out[Frame[M]]) {
	if e := p.promised(); e.Leader != from || e.Round == 0 {
		out.Send(from, Frame[M]{Kind: Notify, Epoch: e, Note: &Note{Old: !p.loose()}})
	}
}

// The user.

func (p *Process[M]) try(wants string, once bool, out *protocol.Out[Frame[M]]) {
	p.section, p.wants, p.once = protocol.InTry, wants, once
	if !p.active {
		p.refuse(out)
		return
	}
	p.ask(out)
}

// refuse tells a user who does not want to wait that there is no majority.
func (p *Process[M]) refuse(out *protocol.Out[Frame[M]]) {
	if p.once || p.tell {
		p.rem(NoMajority, out)
	}
}

func (p *Process[M]) rem(reason string, out *protocol.Out[Frame[M]]) {
	p.section, p.wants, p.once, p.asked, p.byOld = protocol.InRem, "", false, false, false
	out.Rem(reason)
}

// ask hands a try to the algorithm, unless that has to wait.
func (p *Process[M]) ask(out *protocol.Out[Frame[M]]) {
	if p.section != protocol.InTry || p.asked || p.old.pending || !p.running || p.frozen {
		return
	}
	p.asked = true
	in := protocol.Input{Kind: protocol.Try, Data: p.wants}
	if p.once {
		in.Arg = protocol.TryOnce
	}
	p.give(in, *new(M), out)
}

func (p *Process[M]) exit(out *protocol.Out[Frame[M]]) {
	switch {
	case p.section == protocol.InLost:
		p.rem("", out)
	case p.byOld:
		p.rem("", out)
		f := Frame[M]{Kind: Leave, Epoch: p.epoch}
		next := p.old.next
		p.old = old{}
		for j := range (next & p.linked).all {
			if j != p.id {
				out.Send(j, f)
			}
		}
		if next.has(p.id) {
			p.onLeave(p.id, out)
		}
	default:
		p.section = protocol.InExit
		if p.answer(out) {
			return // the instance has ended, and with it whatever its exit would tell
		}
		p.give(protocol.Input{Kind: protocol.Exit}, *new(M), out)
	}
}

// The algorithm.

// rank is the place of a member in the present instance, where its algorithm knows it by
// that: the coordinator is where an algorithm lets somebody in at first, and the others
// follow in order.
func (p *Process[M]) rank(id protocol.ID) protocol.ID {
	leader, k := p.epoch.Leader, protocol.ID(p.members.len())
	below := protocol.ID((p.members & (only(id) - 1)).len()) // whose ids are smaller
	switch {
	case id == leader && p.w.last:
		return k - 1
	case id == leader:
		return 0
	case p.w.last && leader < id:
		return below - 1
	case !p.w.last && leader > id:
		return below + 1
	}
	return below
}

// at is the member of a rank.
func (p *Process[M]) at(rank protocol.ID) protocol.ID {
	for id := range p.members.all {
		if p.rank(id) == rank {
			return id
		}
	}
	panic("recovery: a process that is not of the instance")
}

// give steps the algorithm's own process.
func (p *Process[M]) give(in protocol.Input, m M, out *protocol.Out[Frame[M]]) {
	p.out.Reset()
	p.inner.Step(protocol.Event[M]{Input: in, Msg: m}, &p.out)
	for i := range p.out.Effects {
		e := &p.out.Effects[i]
		f := Frame[M]{Epoch: p.epoch, Msg: e.Msg}
		switch e.Do {
		case protocol.Send:
			if to := p.at(e.To); p.linked.has(to) {
				out.Send(to, f)
			}
		case protocol.Broadcast:
			for to := range (p.linked &^ only(p.id)).all {
				out.Send(to, f)
			}
		case protocol.Crit:
			p.section = protocol.InCrit
			out.CritIn(protocol.Group(e.Data), 0)
		case protocol.Rem:
			p.rem(e.Data, out)
		default:
			panic("recovery: an effect of an algorithm that cannot be restarted")
		}
	}
}
