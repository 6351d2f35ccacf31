package check

import "github.com/poundlock/poundlock/verify/world"

// detections appends the steps of the failure detector.
func (x *worker) detections(list []action) []action {
	st, n := x.st, x.rules.Config.N
	mayLapse := x.calm && left(st, suspectBudget) > 0
	add := func(v verb, a, b int) { list = append(list, action{verb: v, a: uint8(a), b: uint8(b)}) }
	for p := range n {
		if x.absent(st, p) {
			continue
		}
		for q := range x.rules.Total {
			switch {
			case q == p:
			case !x.rules.Peers && x.user[q]:
				n := x.rules.Lease(x.ends, q, p)
				if n&world.ToSuspect != 0 {
					add(suspect, p, q)
				}
				if n&world.ToRestore != 0 {
					add(restore, q, p)
				}
				switch {
				case n&world.MayLapse == 0:
				case n&world.Paused != 0:
					add(expire, q, p)
				case mayLapse:
					add(lapse, q, p)
				}
			case x.rules.Mutual:
				switch n := x.rules.Session(x.ends, p, q); {
				case n == world.ToLapse:
					add(follow, p, q)
				case n == world.MayLapse|world.Paused:
					add(expire, p, q)
				case n == world.MayLapse && mayLapse:
					add(lapse, p, q)
				case n == world.ToSuspect:
					add(suspect, p, q)
				case n == world.ToRestore:
					add(restore, p, q)
				}
			case x.rules.Peers:
				n := x.rules.Suspicion(x.ends, p, q)
				if n&world.ToSuspect != 0 {
					add(suspect, p, q)
				}
				if n&world.ToRestore != 0 {
					add(restore, p, q)
				}
				switch {
				case n&world.MaySuspect == 0:
				case n&world.Paused != 0:
					add(hasten, p, q)
				case left(st, suspectBudget) > 0:
					add(mistake, p, q)
				}
			}
		}
	}
	return list
}

// faults appends the faults that budgets allow. To drain is none, but as free.
func (x *worker) faults(list []action) []action {
	st := x.st
	for i := 0; i < x.rules.Config.N && x.calm && left(st, amnesiaBudget) > 0; i++ {
		if !x.absent(st, i) {
			list = append(list, action{verb: amnesia, a: uint8(i)})
		}
	}
	for i := 0; i < x.rules.Config.N && !x.rules.Peers && left(st, drainBudget) > 0; i++ {
		if !x.absent(st, i) {
			list = append(list, action{verb: drain, a: uint8(i)})
		}
	}
	for i := 0; i < x.rules.Total && left(st, crashBudget) > 0; i++ {
		if (x.user[i] || x.rules.Elects()) && !x.absent(st, i) {
			list = append(list, action{verb: crash, a: uint8(i)})
		}
	}
	for i := 0; i < x.rules.Config.N && x.rules.Peers && left(st, recoverBudget) > 0; i++ {
		if x.absent(st, i) {
			list = append(list, action{verb: recovery, a: uint8(i)})
		}
	}
	for i := 0; i < x.rules.Total && left(st, pauseBudget) > 0; i++ {
		if !x.absent(st, i) && !x.faces[st[1+i]].paused {
			list = append(list, action{verb: pause, a: uint8(i)})
		}
	}
	return x.channelFaults(list)
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
	if a.verb == hasten {
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
	case lapse, follow, expire:
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
		if x.next[1+p], known = x.bury(p); !known {
			return o, false
		}
		x.next[0] -= a.cost()
		if o.fault, known = x.falls(p); !known {
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
		if some(x.mail.from(msg), x.mail.to(msg)) {
			x.next = append(x.next, msg)
		}
	}
}
