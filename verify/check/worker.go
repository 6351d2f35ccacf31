package check

import (
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/world"
)

// A worker takes steps in a space. It is the memory that one goroutine needs for
// that, and it is in one state at a time.
//
// Most actions lead to states that were found before. So a worker first computes
// only the fingerprint of the next state, from that of this one and what changes;
// it builds the vector where it must.
type worker struct {
	*space
	m *machine
	// A frozen worker looks up what was interned and computed, and adds nothing: others look it up
	// at the same time. Where it does not find something it misses it, and goes on with anything:
	// where the action leads that it takes is then not known.
	frozen, missing bool
	// A raw worker moves no counters, renames no members and leaves nothing out: it
	// follows a run of the algorithm itself.
	raw bool

	st           []uint32   // the state it is in
	ends         world.Ends // its processes, for who asks about detectors
	later        world.Ends // those of next
	own          uint64     // its fingerprint
	lossAllowed  bool       // it allows a loss
	lapseAllowed bool       // and that a lease of a process that pauses lapses
	whole        bool       // every message that is sent arrives in flight
	sum          digest     // of the words
	// Counters at their least in two words or more, in three or more: of these one is
	// left when a step replaces two words.
	twice, thrice uint64

	object *history.Weak // scratch, nil: there is none
	claims memo[bool]    // of confluence, by local state and message
	sym    *symmetry     // nil: no symmetry

	next     []uint32 // the vector being built
	shifting bool     // it was changed by moving counters by x.by, in the last step
	acts     []action

	users history.Users
	says  history.Leaders
	holds []protocol.Group
	tries []protocol.Groups // of who tries
	key   []byte
	by    []uint64
}

func newWorker(s *space, m *machine) *worker {
	x := &worker{
		space: s, m: m, ends: make(world.Ends, s.rules.Total), later: make(world.Ends, s.rules.Total), users: make(history.Users, s.rules.Total), tries: make([]protocol.Groups, s.rules.Total),
	}
	if s.rules.Info.Weak {
		x.object = history.NewWeak(s.rules.Config.N)
	}
	x.reduce(s.reduction)
	return x
}

// enter goes to the state st, which must not change until the next one.
func (x *worker) enter(st []uint32) {
	if x.rules.Detector != protocol.NoDetector {
		x.endsOf(st, x.ends)
	}
	x.st, x.whole = st, !x.fifo && (x.sym == nil || x.raw)
	x.sum, x.twice, x.thrice = digest{hash: budgetHash(st[0])}, 0, 0
	for i, n := range st[1 : 1+x.rules.Total] {
		if n == 0 {
			x.whole = x.whole && x.down[i]
			continue
		}
		f := &x.summaries[n]
		x.whole = x.whole && !f.apart && !f.gone
		x.join(&f.digest)
	}
	for _, msg := range st[x.flight:] {
		x.join(&x.messages.all[msg].digest)
	}
	x.sum.hash += x.common(st)
	x.own = max(x.sum.hash, 1)
	if x.fifo {
		x.own = x.print(st)
	}
	if x.lossAllowed, x.lapseAllowed = true, true; x.c.Spaced > 0 {
		unsettled := x.unsettled(st)
		x.lossAllowed = unsettled+x.rules.Missing(x.ends) < x.c.Spaced
		x.lapseAllowed = x.lossAllowed || unsettled == 0
	}
}

// unborn is the end of a process that has not begun yet.
var unborn world.End

// endsOf fills in what the environment knows of the processes of a state.
func (x *worker) endsOf(st []uint32, ends world.Ends) world.Ends {
	for i, n := range st[1 : 1+x.rules.Total] {
		switch n {
		case 0:
			ends[i] = nil
		case math.MaxUint32:
			ends[i] = &unborn
		default:
			ends[i] = &x.locals[n].End
		}
	}
	return ends
}

func (x *worker) join(m *digest) {
	x.thrice |= x.twice & m.floor
	x.twice |= x.sum.floor & m.floor
	x.sum.add(*m)
}

// print returns the fingerprint of a state, which is never 0: the sum of one random
// number for each word. A number for each word of a multiset makes equal multisets
// equal whatever the order; with FIFO channels the place in the channel counts.
func (x *worker) print(st []uint32) uint64 {
	h := budgetHash(st[0]) + x.common(st)
	for _, n := range st[1 : 1+x.rules.Total] {
		h += x.summaries[n].hash
	}
	rank, before := uint64(0), -1
	for _, msg := range st[x.flight:] {
		if !x.fifo {
			h += x.messages.all[msg].hash
			continue
		}
		if ch := x.channel(msg); ch != before {
			rank, before = 0, ch
		}
		h += scramble(x.messages.all[msg].hash + rank)
		rank++
	}
	return max(h, 1)
}

// common is what the words that all processes share add to a fingerprint.
func (x *worker) common(st []uint32) (h uint64) {
	for kind, at := range x.shared.at {
		if at > 0 {
			h += x.shared.words[kind].hashes[st[at]]
		}
	}
	for _, n := range st[x.cells:x.flight] {
		h += x.shared.words[registerWord].hashes[n]
	}
	return h
}

func budgetHash(budgets uint32) uint64 { return scramble(uint64(budgets)) }

// actions appends the actions of the state entered, in an order that depends on
// the state only.
func (x *worker) actions(list []action) []action {
	if !x.raw && !x.c.apart && x.shared.at[consensusWord] > 0 {
		a, none := x.consensus(x.st), len(list)
		if i := slices.IndexFunc(a.Decisions, func(b world.Ballot) bool { return b.New }); i >= 0 {
			list = x.hearings(list, a, a.Decisions[i])
		}
		if len(list) > none {
			return list // a decision was made in the last step: that somebody hears of it comes first
		}
	}
	return x.possible(list)
}

// possible appends all actions that are possible, those included that may wait for a decision to be
// heard of: see object.go.
func (x *worker) possible(list []action) []action {
	st := x.st
	for i := range x.rules.Total {
		n := st[1+i]
		f := &x.summaries[n]
		if f.gone {
			continue
		}
		if f.paused {
			list = append(list, action{verb: resume, a: uint8(i)})
			continue
		}
		if x.user[i] {
			e := &x.locals[n].End
			if x.c.Downgrade && x.rules.Downgrades(e.Section, e.Group) {
				list = append(list, action{verb: downgrade, a: uint8(i)})
			}
			switch {
			case f.section == protocol.InRem && f.tries:
				for k := range x.wants[i] {
					list = append(list, action{verb: try, a: uint8(i), arg: uint32(k)})
				}
			case f.section == protocol.InCrit && f.tasks:
				list = append(list, action{verb: issue, a: uint8(i), arg: x.locals[n].Issued + 1})
			case f.section == protocol.InCrit && !x.c.Stay && !x.rules.Stays(e) || f.section == protocol.InLost:
				list = append(list, action{verb: exit, a: uint8(i)})
			case f.section == protocol.InTry && x.affords(cancel):
				list = append(list, action{verb: cancel, a: uint8(i)})
			}
		}
		if x.timers && f.timers && !x.waiting(i) {
			for _, t := range x.locals[n].Timers {
				list = append(list, action{verb: timeout, a: uint8(i), arg: t})
			}
		}
	}
	if x.rules.Memory != nil {
		list = x.accesses(list)
	}
	for at := x.flight; at < len(st); at++ {
		msg := st[at]
		if at > x.flight && (msg == st[at-1] || x.fifo && x.channel(msg) == x.channel(st[at-1])) {
			continue
		}
		l := &x.messages.all[msg]
		if x.c.Pause > 0 && x.summaries[st[1+l.to]].paused || x.rules.Mutual && x.rules.Withheld(x.ends, int(l.from), int(l.to)) {
			continue
		}
		a := action{verb: deliver, a: l.from, b: l.to, arg: msg, at: uint32(at)}
		if !l.stays(x.forgets) {
			list = append(list, a)
		}
		if l.idempotent {
			a.keep = true
			list = append(list, a)
		}
	}
	if x.shared.at[consensusWord] > 0 {
		list = x.choosing(list)
	}
	if x.rules.Info.Detector != protocol.NoDetector {
		list = x.detections(list)
	}
	if st[0] != 0 {
		list = x.faults(list)
	}
	return list
}

// An outcome is where an action leads.
type outcome struct {
	print uint64 // fingerprint of the next state
	move  uint32
	moved bool   // there is a move: a crash has none
	built bool   // next holds the vector
	fault uint32 // what the judge of an object finds: 0, or 1 + an index in problems
	still bool   // next equals the state itself, not only up to the names of members
}

// subject is the process that an action of a state is a move of, and the argument of that move.
func (x *worker) subject(st []uint32, a *action) (p int, arg uint64) {
	switch a.verb {
	case deliver:
		return int(a.b), uint64(a.arg)
	case suspect, mistake, suspectPaused, lapse, lapseBroken, lapsePaused:
		return int(a.a), uint64(a.b)
	case restore:
		return int(a.a), uint64(a.b) | x.locals[st[1+a.b]].Life<<8
	case hear:
		return int(a.a), uint64(a.at)<<32 | uint64(a.arg)
	}
	return int(a.a), uint64(a.arg)
}

// adds reports whether x may add what it has not found.
func (x *worker) adds() bool {
	x.missing = x.missing || x.frozen
	return !x.frozen
}

// once returns what create gives for a key: it is called once for each. A frozen worker that misses it
// gets the zero value.
func once[V any](x *worker, m *memo[V], key uint64, create func() V) (v V) {
	if n, known := m.find(key); known {
		return m.values[n]
	}
	if x.adds() {
		v = create()
		m.keep(key, v)
	}
	return v
}

// apply takes an action of the state entered. known says whether x found out where that leads: a
// frozen worker may miss something. Actions go by pointers here: a copy of one that was just put
// together waits until all its parts are stored, which takes as long as the rest.
func (x *worker) apply(a *action) (o outcome, known bool) {
	x.missing, x.shifting = false, false
	p, arg := x.subject(x.st, a)
	plain := a.verb.plain()
	if !plain && x.unnoticed(a) {
		o.fault = x.prepare(a)
		return x.settle(o, p), !x.missing
	}
	if o.move = x.move(x.st[1+p], a.verb, arg); x.missing {
		return o, false
	}
	m := &x.moves[o.move]
	if o.moved = true; m.to == 0 {
		o.print = x.own
		return o, true
	}
	st, spreads := x.st, !plain && x.spreads(a)
	if spreads {
		x.prepare(a)
		st = x.next
	}
	if !x.unrelated(m, p, st) && x.adds() {
		x.deny("after %q a counter begins of which others have values: its distance to them is none", x.line(*a, x.m))
	}
	if !spreads {
		if x.whole && m.plain && x.change(a, p, m, &o) {
			return o, !x.missing
		}
		x.prepare(a)
	}
	o.fault = x.complete(m, p)
	return x.settle(o, p), !x.missing
}

// change computes the fingerprint of the next state from what changes. It returns
// false when counters may have to be moved.
func (x *worker) change(a *action, p int, m *move, o *outcome) bool {
	old := &x.summaries[x.st[1+p]]
	hash := x.sum.hash + m.hash - old.hash
	one, two := old.floor, uint64(0) // at their least in one, and in both of the words that vanish
	switch {
	case a.verb == deliver && !a.keep:
		l := &x.messages.all[a.arg]
		hash -= l.hash
		one, two = one|l.floor, one&l.floor
	case a.verb == write:
		to, of := x.written(*a), &x.shared.words[registerWord]
		hash += of.hashes[to] - of.hashes[x.st[a.at]]
	case x.cost(a) != 0:
		hash += budgetHash(x.st[0]-x.cost(a)) - budgetHash(x.st[0])
	}
	more, fault := x.exchange(m.update)
	o.print, o.fault = max(hash+more, 1), fault
	floor := x.sum.floor&^one | x.twice&^two | x.thrice | m.floor
	return !x.shifts || x.raw || (x.sum.above|m.above)&^floor == 0
}

// build builds the vector behind a, one of the actions that are a move of one process, before
// counters are moved.
func (x *worker) build(a *action, move uint32) {
	x.prepare(a)
	if m := &x.moves[move]; m.to != 0 {
		p, _ := x.subject(x.st, a)
		x.complete(m, p)
	}
}

// prepare begins to build the vector behind a: all except the step of its process. It returns
// what the judge of an object finds.
func (x *worker) prepare(a *action) (fault uint32) {
	if (a.verb == deliver || a.verb == lose) && !a.keep {
		x.next = append(append(x.next[:0], x.st[:a.at]...), x.st[a.at+1:]...)
	} else {
		x.next = append(x.next[:0], x.st...)
	}
	if x.next[0] -= x.cost(a); a.verb == write {
		x.next[a.at] = x.written(*a)
	} else if !a.verb.plain() && x.spreads(a) {
		fault = x.spread(a)
	}
	return fault
}

// complete puts a move of process p into the vector being built. It returns what the judge of an
// object finds.
func (x *worker) complete(m *move, p int) (fault uint32) {
	x.next[1+p] = m.to
	sends := x.sends(m)
	if len(sends) > 0 && x.rules.Detector == protocol.LeaseDetector {
		x.endsOf(x.next, x.later)
	}
	for _, msg := range sends {
		x.send(msg)
	}
	return x.update(m.update)
}

// settle gives the vector being built, in which process p has made its step, its normal form, and
// takes its fingerprint.
func (x *worker) settle(o outcome, p int) outcome {
	if x.missing {
		return o
	}
	x.forget(p)
	x.lower()
	o.still = x.sym != nil && slices.Equal(x.next, x.st)
	x.name()
	o.print, o.built = x.print(x.next), true
	return o
}

// send puts a message in flight, unless its receiver is absent or the lease
// between the two has lapsed.
func (x *worker) send(msg uint32) {
	st, from, to := x.next, x.messages.from(msg), x.messages.to(msg)
	if x.absent(st, to) || x.rules.Severed(x.later, from, to) {
		return
	}
	i := len(st)
	st = append(st, msg)
	for ; i > x.flight && x.after(st[i-1], msg); i-- {
		st[i] = st[i-1]
	}
	st[i] = msg
	// With FIFO channels only the last one of a channel can be equal, since elsewhere
	// the place in the order matters.
	if x.messages.all[msg].idempotent && i > x.flight && st[i-1] == msg {
		st = slices.Delete(st, i, i+1)
	}
	x.next = st
}

// every is true of every action.
func every(action) bool { return true }

// expand calls f for those actions of st for which some holds, and takes no others. It is for runs, not for
// searches.
func (x *worker) expand(st []uint32, some func(action) bool, f func(visit)) {
	x.enter(st)
	list, _ := x.choices()
	for _, a := range slices.Clone(list) {
		if !some(a) {
			continue
		}
		o := x.reach(a)
		f(visit{a, o, x.next, x.problem(x.wrong(o))})
	}
}

// reach takes an action of the state entered and builds the vector behind it, for a worker that is not frozen.
func (x *worker) reach(a action) outcome {
	o, _ := x.apply(&a)
	if !o.built {
		x.build(&a, o.move)
	}
	return o
}

// beyond is the bound that the next state exceeds, so that it is not to be explored, or -1.
func (x *worker) beyond(o outcome) int {
	if !o.moved {
		return -1
	}
	return int(x.moves[o.move].bound)
}

// wrong is what is wrong with a step: 0, or 1 + an index in problems.
func (x *worker) wrong(o outcome) uint32 {
	if o.moved && x.moves[o.move].problem != 0 {
		return x.moves[o.move].problem
	}
	return o.fault
}

// look puts a state into the view of invariants. It is valid until the next call.
func (x *worker) look(st []uint32) *protocol.View {
	v := &x.m.view
	x.m.flight, v.Registers = st[x.flight:], v.Registers[:0]
	for _, n := range st[x.cells:x.flight] {
		v.Registers = append(v.Registers, x.shared.contents[n].Value)
	}
	for i, n := range st[1 : 1+x.rules.Total] {
		l := &x.locals[n]
		state := l.state
		if v.Users[i] = l.Section; l.Unaware() { // what it believes does not count before it looks at its leases
			state, v.Users[i] = nil, protocol.InRem
		}
		for j := range v.Lost[i] {
			v.Lost[i][j] = l.Lost&(1<<j) != 0
		}
		x.m.see(i, n, state)
	}
	return v
}

// unsettled is Algorithm.Unsettled of a state, 0 where the algorithm has none.
func (x *worker) unsettled(st []uint32) int {
	if x.m.a.Unsettled == nil {
		return 0
	}
	return x.m.a.Unsettled(x.look(st).Procs)
}
