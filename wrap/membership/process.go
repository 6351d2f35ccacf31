package membership

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
	number uint64 // counts the changes of its sessions, and of the instance it is in
	// counted are those that may count on this process: they were in an instance with it,
	// and their session with it lasts. It joins no instance without them.
	counted set
	seen    uint64 // the largest round heard of

	// The instance that it joined last; the zero epoch is that of a new life.
	epoch   protocol.Epoch
	members set // empty while it is not active
	// active: since it joined it has had sessions, each without a break, with a majority of
	// all processes, itself among them, all of which are members. Those that still are:
	// linked. While it is not active it is in no instance.
	active  bool
	linked  set
	base    set                 // where old.kept is, in InCrit: those on which its user counts since it entered
	running bool                // it is not suspended
	frozen  bool                // of a coordinator with fewer than three phases: its own process waits
	inner   protocol.Process[M] // nil unless active
	stray   bool                // it is to leave the instance when its user is outside
	news    uint64              // the number of the newest change that its coordinator is to hear of
	told    told
	offered bool // while it is not active: it has said JOIN to all in reach, and goes on to do so
	old     old

	section protocol.Section
	wants   string // in InTry: the groups; in InCrit: the group
	once    bool   // in InTry: TryOnce
	asked   bool   // in InTry: the algorithm knows
	byOld   bool   // in InCrit: as an old request, or since an older instance

	lead  lead // of a coordinator
	turns turns
	later []early[M]

	// Within a step.
	due bool   // something has changed that restart looks at
	now uint64 // the clock
	out protocol.Out[M]
}

// A peer is another process. All but session is of the present session.
type peer struct {
	session session
	revoked bool             // and not lapsed yet
	since   uint64           // the number since which the session is up
	said    *status          // the newest, nil: nothing
	oldest  protocol.Epoch   // of those that it said it was in last
	asks    *Frame[struct{}] // the newest RESTART from it
}

// A status is what a process said of itself.
type status struct {
	number  uint64         // a newer one has a larger number
	epoch   protocol.Epoch // of the instance that it is in, or was in last
	members set            // of that; empty: it is in none
	since   []uint64       // by process, the number since which it has a session, 0: it has none; nil: it is in no instance
	stray   bool           // it was told to leave
	asked   bool           // it was asked to join, and the instance that it was asked for has not begun
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
	pending bool   // its user waits for START
	late    bool   // its user has tried since: if it fits it gets START, and otherwise RESUME
	kept    bool   // its user was inside when it joined, and START has not come
	closed  bool   // somebody has tried since who does not fit
	started bool   // START has come, and its user has not left since
	before  uint64 // LEAVEs that it waits for
	leaves  uint64 // LEAVEs that came
	group   string
	next    set  // who gets its LEAVE
	last    bool // these are its coordinator alone, which waits for them to resume
}

// lead is the newest instance that this process began as a coordinator, while nothing is
// known that breaks it.
type lead struct {
	epoch   protocol.Epoch // zero: none
	members set
	joins   set      // the members that were in no instance: they answer before the others are asked
	asked   bool     // the others were
	based   []uint64 // by process: the number of what it had said
	done    set
	inside  set               // until they are served: who is inside
	request set               // who has an old request, those among them
	wants   []protocol.Groups // by process, for what
}

// turns are those of the old requests of the present instance, at its coordinator; zero once it runs.
type turns struct {
	await set               // whose LEAVEs are the last ones
	group string            // in which these are, where more of them may come in
	late  set               // those of await who have tried again
	wants []protocol.Groups // by process: for what; nil: nobody has
}

// early is a frame of an instance that this process is not in yet, or that its own
// process of the algorithm has to wait for.
type early[M any] struct {
	from protocol.ID
	f    Frame[M]
}

// Step implements protocol.Process.
func (p *Process[M]) Step(ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	p.now = uint64(max(0, ev.Now))
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
			p.end(ev.From)
		}
	case protocol.Restore:
		p.restore(ev.From, out)
	default:
		panic("recovery: unexpected event")
	}
	p.settle(out)
}

// settle does what is due after an event, until nothing is.
func (p *Process[M]) settle(out *protocol.Out[Frame[M]]) {
	for {
		if p.stray {
			p.stand(out)
		}
		p.report(out)
		if !p.answer(out) && !p.restart(out) {
			return
		}
	}
}

// stand leaves the instance as soon as its user is outside.
func (p *Process[M]) stand(out *protocol.Out[Frame[M]]) {
	if p.wanted(out); p.section != protocol.InCrit {
		p.leave(out)
	}
}

func (p *Process[M]) majority(s set) bool { return 2*s.len() > p.n }

func (p *Process[M]) others() set { return upTo(p.n).without(p.id) }

// reach are the processes that it has sessions with, and itself.
func (p *Process[M]) reach() set {
	return collect(p.n, func(j protocol.ID) bool { return j == p.id || p.peers[j].session == up })
}

// coordinator is who decides on new instances: the least process in reach. Those who all have
// sessions with each other, and with nobody else, have the same one.
func (p *Process[M]) coordinator() protocol.ID { return p.reach().first() }

// start begins a life. The first lives of all are one instance from the start; a later one
// is in none.
func (p *Process[M]) start(incarnation uint64) {
	if p.counted = p.others(); incarnation > 1 {
		return
	}
	first := Frame[struct{}]{Epoch: protocol.Epoch{Round: 1}, Note: &Note{Set: upTo(p.n)}}
	p.join(first)
	for j := range p.others().all {
		p.peers[j].session, p.peers[j].since = up, p.number
	}
	p.running, p.told = true, told{first.Epoch.Leader, p.news}
	if p.id != first.Epoch.Leader {
		return
	}
	for j := range p.others().all {
		s := &status{number: p.number, epoch: p.epoch, members: p.members, since: slices.Repeat([]uint64{p.number}, p.n)}
		s.since[j] = 0
		p.peers[j].said = s
	}
	p.begin(p.epoch, p.members, set{})
	p.lead.asked, p.lead.done = true, p.members
}

// Sessions.

// lapse: the session with j broke. Who loses a majority leaves its instance at once: those
// who go on without it wait for that.
func (p *Process[M]) lapse(j protocol.ID, out *protocol.Out[Frame[M]]) {
	p.change(j)
	p.peers[j] = peer{session: lapsed}
	p.linked, p.base = p.linked.without(j), p.base.without(j)
	// A new life of a coordinator may begin an instance that is called like one of the life before.
	p.later = slices.DeleteFunc(p.later, func(e early[M]) bool { return e.from == j })
	if p.lead.members.has(j) {
		p.drop()
	}
	if p.active && !p.majority(p.support()) {
		p.leave(out)
	}
}

// support are the members that it needs a majority of. Whoever was inside when it joined counts on nobody else before
// all have joined, which START says.
func (p *Process[M]) support() set {
	if p.old.kept && p.section == protocol.InCrit {
		return p.base
	}
	return p.linked
}

// end: j knows.
func (p *Process[M]) end(j protocol.ID) {
	p.peers[j].session = ended
	p.counted = p.counted.without(j)
}

// restore: a new session with j begins.
func (p *Process[M]) restore(j protocol.ID, out *protocol.Out[Frame[M]]) {
	if p.peers[j].session == up {
		return // it was so from the start
	}
	p.change(j)
	p.peers[j].session, p.peers[j].since = up, p.number
	if p.offered {
		p.offer(j, out)
	}
}

// change counts a change of the session with j.
func (p *Process[M]) change(j protocol.ID) {
	p.due = true
	if p.number++; p.members.has(j) {
		p.news = p.number
	}
}

// leave gives up the instance.
func (p *Process[M]) leave(out *protocol.Out[Frame[M]]) {
	p.number++
	p.active, p.running, p.frozen, p.stray, p.members, p.linked, p.inner = false, false, false, false, set{}, set{}, nil
	p.old, p.turns, p.base, p.told, p.news = old{}, turns{}, set{}, told{}, 0
	p.drop()
	switch p.section {
	case protocol.InCrit:
		p.section, p.byOld = protocol.InLost, false
		out.Ejected()
	case protocol.InExit:
		p.rem(0, out)
	case protocol.InTry:
		p.asked = false
		p.refuse(out)
	}
}

// Statuses.

// report tells its coordinator whatever is new; and who is in no instance tells all in reach,
// unless it is the coordinator.
func (p *Process[M]) report(out *protocol.Out[Frame[M]]) {
	c := p.coordinator()
	switch now := (told{c, p.news}); {
	case p.active && p.told != now:
		p.told = now
		if c != p.id {
			p.notify(c, out)
		}
	case !p.active && !p.offered && c != p.id:
		p.offered = true
		for j := range p.reach().without(p.id).all {
			p.offer(j, out)
		}
	}
}

func (p *Process[M]) notify(to protocol.ID, out *protocol.Out[Frame[M]]) {
	out.Send(to, Frame[M]{Kind: Notify, Epoch: p.epoch, Note: &Note{Number: p.number, Set: p.members, Since: p.since()}})
}

func (p *Process[M]) offer(to protocol.ID, out *protocol.Out[Frame[M]]) {
	out.Send(to, Frame[M]{Kind: Join, Epoch: p.epoch, Note: &Note{Number: p.number}})
}

// since is what a NOTIFY or DONE says of its sessions.
func (p *Process[M]) since() []uint64 {
	s := make([]uint64, p.n)
	for j := range p.peers {
		s[j] = p.peers[j].since
	}
	return s
}

// hear takes a status, unless a newer one came before.
func (p *Process[M]) hear(from protocol.ID, f Frame[M]) {
	p.due = true
	q := &p.peers[from]
	if q.said == nil || f.Epoch.Before(q.oldest) {
		q.oldest = f.Epoch
	}
	if q.said == nil || q.said.number < f.Note.Number {
		q.said = &status{number: f.Note.Number, epoch: f.Epoch, members: f.Note.Set, since: f.Note.Since}
	}
}

// How a process joins an instance.

// onRestart keeps the newest RESTART of each coordinator.
func (p *Process[M]) onRestart(from protocol.ID, f Frame[M]) {
	if r := p.peers[from].asks; r == nil || r.Epoch.Before(f.Epoch) {
		p.peers[from].asks = &Frame[struct{}]{Kind: Restart, Epoch: f.Epoch, Note: f.Note}
	}
}

// answer answers a RESTART if one is due: with the newer epoch of the instance that this process
// joined already, or with DONE.
func (p *Process[M]) answer(out *protocol.Out[Frame[M]]) bool {
	for j := range p.peers {
		from, r := protocol.ID(j), p.peers[j].asks
		switch {
		case r == nil:
		case !p.epoch.Before(r.Epoch):
			p.peers[j].asks = nil
			out.Send(from, Frame[M]{Kind: Notify, Epoch: p.epoch, Note: &Note{}})
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

// broken reports whether it is in vain to wait until this process is ready: it has joined
// something since it said JOIN, or among those who were in an instance before, a session has not lasted
// since it said what the RESTART is based on. Its coordinator is about to hear of that.
func (p *Process[M]) broken(from protocol.ID, r *Frame[struct{}]) bool {
	n := r.Note
	switch {
	case from == p.id:
		return false
	case n.Joins.has(p.id):
		return p.active
	}
	for j := range n.Set.minus(n.Joins).without(p.id).all {
		if p.peers[j].since > n.Number {
			return true
		}
	}
	return false
}

// ready reports whether this process may join: it has a session with each member, that with one who joins since before it did
// so, nobody who is left out counts on it, and, where nobody waits for who is inside, its user is not.
func (p *Process[M]) ready(from protocol.ID, r *Frame[struct{}], out *protocol.Out[Frame[M]]) bool {
	n := r.Note
	if from != p.coordinator() || !n.Set.minus(p.reach()).empty() {
		return false
	}
	for j := range n.Joins.without(p.id).all {
		if q := &p.peers[j]; q.said == nil || !q.oldest.Before(r.Epoch) {
			return false
		}
	}
	if rest := p.counted.minus(n.Set); !rest.empty() {
		for j := range rest.and(p.reach()).all {
			if !p.peers[j].revoked {
				p.peers[j].revoked = true
				out.Revoke(j)
			}
		}
		return false
	}
	if p.phases == 3 || p.section != protocol.InCrit {
		return true
	}
	p.wanted(out)
	return false
}

// wanted tells a user who is inside that its instance is to end, or has others who wait: nobody else is to come in beside it.
func (p *Process[M]) wanted(out *protocol.Out[Frame[M]]) {
	if p.section == protocol.InCrit && p.w.inner.Tells {
		out.Wanted()
	}
}

// accept joins the instance of a RESTART, and says so.
func (p *Process[M]) accept(from protocol.ID, r Frame[struct{}], out *protocol.Out[Frame[M]]) {
	if p.section == protocol.InExit {
		p.rem(0, out)
	}
	p.join(r)
	p.told = told{from, p.news}
	if from != p.id {
		p.drop()
		n := &Note{Number: p.number, Set: p.members, Since: p.since(), Old: p.old.pending, Inside: p.old.kept}
		if n.Old || n.Inside {
			n.Groups = p.wants
		}
		out.Send(from, Frame[M]{Kind: Done, Epoch: p.epoch, Note: n})
	}
	p.running = p.phases < 3
	p.frozen = p.running && from == p.id
	p.ask(out)
	p.deliver(out)
	if from == p.id {
		p.done(p.id, &Note{Old: p.old.pending, Inside: p.old.kept, Groups: p.wants}, out)
	}
}

// join makes the instance of a RESTART the present one.
func (p *Process[M]) join(r Frame[struct{}]) {
	inside := p.section == protocol.InCrit
	if inside {
		p.base = p.support()
	}
	p.due = true
	p.number++
	p.epoch, p.members, p.active, p.stray, p.offered = r.Epoch, r.Note.Set, true, false, false
	p.seen = max(p.seen, p.epoch.Round)
	p.linked, p.counted, p.news = p.members, p.members.without(p.id), p.number
	p.running, p.frozen, p.asked = false, false, false
	p.turns = turns{}
	p.old, p.byOld = old{pending: p.section == protocol.InTry && p.phases > 1, kept: inside}, inside
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
		p.hear(from, f)
		return
	case Restart:
		p.onRestart(from, f)
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
	}
	switch f.Kind {
	case Inner:
		p.give(protocol.NewReceive(p.rank(from)), f.Msg, out)
	case Start:
		p.onStart(f.Note, out)
	case Leave:
		p.onLeave(from, out)
	case Want:
		p.onWant(from, protocol.Groups(f.Note.Groups), out)
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
	return bytes.Compare(p.encoded(a.f), p.encoded(b.f)) > 0
}

func (p *Process[M]) encoded(f Frame[M]) []byte {
	c := new(protocol.Codec).Appending(nil)
	p.w.fields(f, c)
	return c.Bytes()
}

// The user.

func (p *Process[M]) try(wants string, once bool, out *protocol.Out[Frame[M]]) {
	p.section, p.wants, p.once = protocol.InTry, wants, once
	if !p.active {
		p.refuse(out)
		return
	}
	p.ask(out)
	p.want(out)
}

// refuse tells a user who does not want to wait that there is no majority.
func (p *Process[M]) refuse(out *protocol.Out[Frame[M]]) {
	if p.once || p.tell {
		p.rem(protocol.NoMajority, out)
	}
}

func (p *Process[M]) rem(why protocol.Reason, out *protocol.Out[Frame[M]]) {
	p.section, p.wants, p.once, p.asked, p.byOld = protocol.InRem, "", false, false, false
	out.GiveUp(why)
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
		p.rem(0, out)
	case p.byOld:
		p.base = set{}
		if p.rem(0, out); !p.old.kept { // otherwise START says who gets its LEAVE
			p.left(out)
		}
	default:
		p.section = protocol.InExit
		if p.answer(out) {
			return // the instance has ended, and with it whatever its exit would tell
		}
		p.give(protocol.Input{Kind: protocol.Exit}, *new(M), out)
	}
}

// left says LEAVE for an old request.
func (p *Process[M]) left(out *protocol.Out[Frame[M]]) {
	f := Frame[M]{Kind: Leave, Epoch: p.epoch}
	next := p.old.next
	p.old = old{}
	for j := range next.and(p.linked).all {
		if j != p.id {
			out.Send(j, f)
		}
	}
	if next.has(p.id) {
		p.onLeave(p.id, out)
	}
}

// want tells the coordinator of a user that has tried while the instance is suspended, and may share with who is inside.
func (p *Process[M]) want(out *protocol.Out[Frame[M]]) {
	if !p.w.inner.Grouped || p.section != protocol.InTry || p.running || p.old.kept {
		return
	}
	p.old.late = true
	if to := p.epoch.Leader; to != p.id {
		out.Send(to, Frame[M]{Kind: Want, Epoch: p.epoch, Note: &Note{Groups: p.wants}})
	} else {
		p.onWant(to, protocol.Groups(p.wants), out)
	}
}

// The algorithm.

// rank is the place of a member in the present instance, where its algorithm knows it by
// that: the coordinator, who is the least of them, is where an algorithm lets somebody in at
// first, and the others follow in order.
func (p *Process[M]) rank(id protocol.ID) protocol.ID {
	below := p.members.below(id)
	if p.w.last {
		below += p.members.len() - 1
	}
	return protocol.ID(below % p.members.len())
}

// at is the member of a rank.
func (p *Process[M]) at(rank protocol.ID) protocol.ID {
	place := int(rank)
	if p.w.last {
		place = (place + 1) % p.members.len()
	}
	for id := range p.members.all {
		if place == 0 {
			return id
		}
		place--
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
			for to := range p.linked.without(p.id).all {
				out.Send(to, f)
			}
		case protocol.Crit:
			p.section, p.wants = protocol.InCrit, e.Data
			out.CritIn(protocol.Group(e.Data), p.token(e.Act.Arg))
		case protocol.Rem:
			p.rem(e.Reason(), out)
		case protocol.Wanted:
			out.Wanted()
		default:
			panic("recovery: an effect of an algorithm that cannot be restarted")
		}
	}
}

// Inspect implements protocol.Inspector: whoever is inside counts on the members with which it has had sessions, without a
// break, since it joined the instance.
func (p *Process[M]) Inspect() (st protocol.Standing) {
	if p.section == protocol.InCrit && p.active {
		for j := range p.support().without(p.id).all {
			st.Supports = append(st.Supports, j)
		}
	}
	return st
}
