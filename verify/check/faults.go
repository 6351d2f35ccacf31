package check

import (
	"math"
	"slices"

	"github.com/poundlock/poundlock/verify/world"
)

// detections appends the steps of the failure detector.
func (x *worker) detections(list []action) []action {
	first := 0 // of those whom members may suspect
	if !x.rules.Peers {
		first = x.rules.Config.N
	}
	for p := range x.rules.Config.N {
		if x.absent(x.st, p) {
			continue
		}
		for q := first; q < x.rules.Total; q++ {
			if x.rules.Peers {
				list = x.notices(list, p, q, x.rules.Notices(x.ends, p, q))
				continue
			}
			n := x.rules.Lease(x.ends, q, p)
			list = x.notices(list, p, q, n&world.ToSuspect)
			list = x.notices(list, q, p, n&^world.ToSuspect)
		}
	}
	return list
}

// notices appends what the failure detector may tell process p of process q.
func (x *worker) notices(list []action, p, q int, n world.Notices) []action {
	paused, mistakes := n&world.Paused != 0, x.affords(mistake)
	if n&world.Must == 0 && !paused && !mistakes {
		return list
	}
	add := func(v verb, may bool) {
		if may {
			list = append(list, action{verb: v, a: uint8(p), b: uint8(q)})
		}
	}
	add(suspect, n&world.ToSuspect != 0)
	add(restore, n&world.ToRestore != 0)
	add(lapseBroken, n&world.ToLapse != 0)
	add(lapsePaused, n&world.MayLapse != 0 && paused && x.lapseAllowed)
	add(lapse, n&world.MayLapse != 0 && !paused && mistakes && x.lossAllowed)
	add(suspectPaused, n&world.MaySuspect != 0 && paused)
	add(mistake, n&world.MaySuspect != 0 && !paused && mistakes)
	return list
}

// faults appends the faults that budgets allow. To drain is none, but as free.
func (x *worker) faults(list []action) []action {
	for _, v := range [...]verb{amnesia, drain, crash, recovery, pause} {
		if !x.affords(v) {
			continue
		}
		for i := range x.rules.Total {
			if x.strikes(v, i) {
				list = append(list, action{verb: v, a: uint8(i)})
			}
		}
	}
	return x.channelFaults(list)
}

// strikes reports whether a fault may happen to process i.
func (x *worker) strikes(v verb, i int) bool {
	there := !x.absent(x.st, i)
	switch v {
	case amnesia:
		return there && i < x.rules.Config.N && x.lossAllowed
	case drain:
		return there && i < x.rules.Config.N && !x.rules.Peers
	case crash:
		return there && x.rules.Mortal(i)
	case recovery:
		return !there && x.rules.Peers
	}
	return there && !x.summaries[x.st[1+i]].paused
}

// unnoticed reports whether no process takes a step with an action of the state entered.
func (x *worker) unnoticed(a *action) bool {
	switch a.verb {
	case crash, pause, lose, duplicate, begin, agree:
		return true
	case lapse, lapseBroken, lapsePaused:
		return x.summaries[x.st[1+a.a]].paused
	}
	return false
}

// spreads reports whether an action of the state entered changes more than one process that takes
// a step, with the messages to it and from it.
func (x *worker) spreads(a *action) bool {
	switch a.verb {
	case lapse, lapseBroken, lapsePaused, amnesia, suspectPaused:
		return true
	case suspect, mistake:
		return x.rules.Leases && x.st[1+a.b] != 0
	}
	return x.unnoticed(a)
}

// spread puts what an action that spreads changes into the vector being built, except for the step
// of its process. It returns what the judge of an object finds.
func (x *worker) spread(a *action) (fault uint32) {
	p, q := int(a.a), int(a.b)
	l := x.locals[x.st[1+p]]
	switch a.verb {
	case duplicate:
		x.next = slices.Insert(x.next, int(a.at), a.arg)
	case agree:
		fault = x.update(x.decision(*a))
	case begin:
		c := x.shared.contents[x.st[a.at]]
		c.Begin(&l.End, q)
		x.next[1+p], x.next[a.at] = x.intern(l), x.content(c)
	case pause:
		l.Paused = true
		x.next[1+p] = x.intern(l)
	case lapse, lapseBroken, lapsePaused:
		from, to := x.rules.Cuts(x.ends, p, q, true)
		x.cut(func(f, t int) bool { return from && f == q && t == p || to && f == p && t == q })
		if l.Paused {
			x.rules.Miss(&l.End, q)
			x.next[1+p] = x.intern(l)
		}
	case suspect, mistake, suspectPaused:
		// What the other one knows of the two changes, too. The lease of a client ends on the side of the
		// member: what the client sent before and has not arrived is lost.
		from, _ := x.rules.Cuts(x.ends, p, q, false)
		x.cut(func(f, t int) bool { return from && f == q && t == p })
		if l = x.locals[x.st[1+q]]; a.verb == suspectPaused {
			l.Noticed(p)
		} else {
			l.Ended |= 1 << p
		}
		x.next[1+q] = x.intern(l)
	case amnesia:
		// Its user, if it has one, is in its remainder section; every user that tries or
		// is inside remembers that the member is faulty.
		for u := range x.rules.Total {
			if l = x.locals[x.st[1+u]]; x.rules.Forgotten(&l.End, u, p) {
				x.next[1+u] = x.intern(l)
			}
		}
	case crash:
		x.cut(func(f, t int) bool { return x.rules.Buried(x.ends, p, f, t) })
		x.next[1+p] = x.remains(p)
		fault = x.update(x.shared.crash[p])
	}
	return fault
}

// cut takes messages on some channels out of the vector being built.
func (x *worker) cut(some func(from, to int) bool) {
	kept := x.next[:x.flight]
	for _, msg := range x.next[x.flight:] {
		if !some(x.messages.from(msg), x.messages.to(msg)) {
			kept = append(kept, msg)
		}
	}
	x.next = kept
}

// absent reports whether process i is not there: never up, or crashed.
func (s *space) absent(st []uint32, i int) bool {
	return st[1+i] != math.MaxUint32 && s.summaries[st[1+i]].gone
}

// enough reports whether who tries may count on the members that are up in a state. One that came
// back counts as crashed as long as it is unsettled.
func (x *worker) enough(st []uint32) bool {
	if !x.rules.Info.Majority {
		return true
	}
	unsettled := 0
	if x.budget>>recoverBudget&maxBudget > 0 {
		unsettled = x.unsettled(st)
	}
	return x.rules.Enough(x.endsOf(st, x.later), unsettled)
}

// remains returns what is left of process p when it crashes: what its next life begins with,
// and whom it named.
func (x *worker) remains(p int) uint32 {
	if !x.rules.Peers {
		return 0
	}
	l := &x.locals[x.st[1+p]]
	left := local{End: x.rules.Crashed(&l.End), proc: p}
	if x.budget>>recoverBudget&maxBudget == 0 {
		if left.Past == nil {
			return 0
		}
		left.Life, left.Issued = 0, 0
	} else {
		left.entries = l.entries
	}
	return x.intern(left)
}

// waiting reports whether a timer of process i does not fire yet because time-outs are
// bounded: see Synchronous.
func (x *worker) waiting(i int) bool {
	if !x.bounded {
		return false
	}
	st := x.st
	for _, msg := range st[x.flight:] {
		l := &x.messages.all[msg]
		if (int(l.from) == i || int(l.to) == i) && !l.stays(x.forgets) {
			return true
		}
	}
	return x.rules.Peers && !x.rules.Told(x.ends, i)
}
