package check

import "github.com/poundlock/poundlock/verify/world"

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
	add(lapsePaused, n&world.MayLapse != 0 && paused)
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

// noticed lets a member suspect another process that is there: what that one knows of the two
// changes, too. The lease of a client ends on the side of the member: what the client sent
// before and has not arrived is lost.
func (x *worker) noticed(a action) (o outcome, known bool) {
	p, q := int(a.a), int(a.b)
	if o.move, known = x.move(x.st[1+p], suspect, uint64(q)); !known {
		return o, false
	}
	l := x.locals[x.st[1+q]]
	if a.verb == suspectPaused {
		l.Noticed(p)
	} else {
		l.Ended |= 1 << p
	}
	other, known := x.intern(l)
	if !known {
		return o, false
	}
	from, _ := x.rules.Cuts(x.ends, p, q, false)
	x.keep(func(f, t int) bool { return !from || f != q || t != p })
	x.next[1+q] = other
	return x.finish(a, o, p)
}

// fault takes one of the faults that change more than one process.
func (x *worker) fault(a action) (o outcome, known bool) {
	p := int(a.a)
	switch a.verb {
	case lapse, lapseBroken, lapsePaused:
		if l := x.locals[x.st[1+p]]; l.Paused {
			x.cut(p, int(a.b))
			x.rules.Miss(&l.End, int(a.b))
			return x.alter(a, p, l)
		}
		if o.move, known = x.move(x.st[1+p], a.verb, uint64(a.b)); !known {
			return o, false
		}
		x.cut(p, int(a.b))
	case amnesia:
		// Its user, if it has one, is in its remainder section; every user that tries or
		// is inside remembers that the member is faulty.
		if o.move, known = x.move(x.st[1+p], amnesia, 0); !known {
			return o, false
		}
		x.next = append(x.next[:0], x.st...)
		for u := range x.rules.Total {
			l := x.locals[x.st[1+u]]
			if !x.rules.Forgotten(&l.End, u, p) {
				continue
			}
			if x.next[1+u], known = x.intern(l); !known {
				return o, false
			}
		}
	case recovery:
		if o.move, known = x.move(x.st[1+p], recovery, 0); !known {
			return o, false
		}
		x.next = append(x.next[:0], x.st...)
	case crash:
		x.keep(func(f, t int) bool { return !x.rules.Buried(x.ends, p, f, t) })
		if x.next[1+p], known = x.remains(p); !known {
			return o, false
		}
		x.next[0] -= a.cost()
		if o.fault, known = x.applyCrash(p); !known {
			return o, false
		}
		return x.settle(o, p)
	}
	return x.finish(a, o, p)
}

// finish puts the move of process p into the vector being built.
func (x *worker) finish(a action, o outcome, p int) (_ outcome, known bool) {
	o.moved = true
	x.next[0] -= a.cost()
	m := &x.moves[o.move]
	if m.to == 0 {
		o.print = x.own
		return o, true
	}
	if !x.unrelated(m, p, x.next) {
		if x.frozen {
			return o, false
		}
		x.deny(a)
	}
	if o.fault, known = x.complete(m, p); !known {
		return o, false
	}
	return x.settle(o, p)
}

// cut copies the state into the vector being built, without the messages that are lost when the
// lease of p at q lapses.
func (x *worker) cut(p, q int) {
	from, to := x.rules.Cuts(x.ends, p, q, true)
	x.keep(func(f, t int) bool { return !(from && f == q && t == p || to && f == p && t == q) })
}

// alter changes what is known of process p in the vector being built, of which it does not notice.
func (x *worker) alter(a action, p int, l local) (o outcome, known bool) {
	if x.next[1+p], known = x.intern(l); !known {
		return o, false
	}
	x.next[0] -= a.cost()
	return x.settle(o, p)
}

// keep copies the state into the vector being built, with those messages only that are on
// channels to be kept.
func (x *worker) keep(some func(from, to int) bool) {
	x.next = append(x.next[:0], x.st[:x.flight]...)
	for _, msg := range x.st[x.flight:] {
		if some(x.messages.from(msg), x.messages.to(msg)) {
			x.next = append(x.next, msg)
		}
	}
}
