package check

import "github.com/poundlock/poundlock/protocol"

// detections appends the steps of the failure detector.
func (x *worker) detections(list []action) []action {
	st := x.st
	if x.mutual {
		return x.leaseSteps(list)
	}
	if x.peers {
		return x.peerDetections(list)
	}
	for j := range x.members {
		if st[1+j] == 0 {
			continue
		}
		for u := range x.total {
			if !x.user[u] || u == j {
				continue
			}
			n := st[1+u]
			if n == 0 {
				list = append(list, action{verb: suspect, a: uint8(j), b: uint8(u)})
			}
			if n == 0 || !x.leases {
				continue
			}
			l, life := &x.locals[n], x.locals[st[1+j]].life
			lapsed, ended := l.lapsed&(1<<j) != 0, l.ended&(1<<j) != 0
			if lapsed && !ended {
				list = append(list, action{verb: suspect, a: uint8(j), b: uint8(u)})
			}
			if l.known[j] != life || ended {
				list = append(list, action{verb: restore, a: uint8(u), b: uint8(j)})
			}
			if !lapsed && x.calm && left(st, suspectBudget) > 0 {
				list = append(list, action{verb: lapse, a: uint8(u), b: uint8(j)})
			}
		}
	}
	return list
}

// faults appends the faults that budgets allow. To drain is none, but as free.
func (x *worker) faults(list []action) []action {
	st := x.st
	for i := 0; i < x.members && x.calm && left(st, amnesiaBudget) > 0; i++ {
		if !x.absent(st, i) {
			list = append(list, action{verb: amnesia, a: uint8(i)})
		}
	}
	for i := 0; i < x.members && left(st, drainBudget) > 0; i++ {
		if !x.absent(st, i) {
			list = append(list, action{verb: drain, a: uint8(i)})
		}
	}
	for i := 0; i < x.total && left(st, crashBudget) > 0; i++ {
		if (x.user[i] || x.elects) && !x.absent(st, i) {
			list = append(list, action{verb: crash, a: uint8(i)})
		}
	}
	for i := 0; i < x.members && left(st, recoverBudget) > 0; i++ {
		if x.absent(st, i) {
			list = append(list, action{verb: recovery, a: uint8(i)})
		}
	}
	return x.channelFaults(list)
}

// endLease ends a client's lease on the side of the member: what the client sent
// before and has not arrived is lost.
func (x *worker) endLease(a action) (o outcome, known bool) {
	j, u := int(a.a), int(a.b)
	if o.move, known = x.move(x.st[1+j], suspect, uint64(u)); !known {
		return o, false
	}
	l := x.locals[x.st[1+u]]
	l.ended |= 1 << j
	ended, known := x.intern(l)
	if !known {
		return o, false
	}
	x.without(u, j)
	x.next[1+u] = ended
	return x.finish(a, o, j)
}

// fault takes one of the faults that change more than one process.
func (x *worker) fault(a action) (o outcome, known bool) {
	p := int(a.a)
	if x.mutual && (a.verb == lapse || a.verb == follow) {
		return x.lapses(a)
	}
	switch a.verb {
	case lapse:
		// The lease ends on the side of the client, which from now on sends nothing to the
		// member and takes nothing from it.
		if o.move, known = x.move(x.st[1+p], lapse, uint64(a.b)); !known {
			return o, false
		}
		x.without(int(a.b), p)
	case amnesia:
		// Its user, if it has one, is in its remainder section; every user that tries or
		// is inside remembers that the member is faulty.
		if o.move, known = x.move(x.st[1+p], amnesia, 0); !known {
			return o, false
		}
		x.next = append(x.next[:0], x.st...)
		for u := range x.total {
			if f := &x.faces[x.st[1+u]]; !x.user[u] || u == p || f.section != protocol.InTry && f.section != protocol.InCrit {
				continue
			}
			l := x.locals[x.st[1+u]]
			l.lost |= 1 << p
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
		x.next = append(x.next[:0], x.st[:x.flight]...)
		if x.next[1+p], known = x.bury(p); !known {
			return o, false
		}
		for _, msg := range x.st[x.flight:] {
			if x.mail.to(msg) != p {
				x.next = append(x.next, msg)
			}
		}
		if x.mutual {
			x.unheld(p)
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

// without copies the state into the vector being built, but for the messages of one
// channel.
func (x *worker) without(from, to int) {
	x.next = append(x.next[:0], x.st[:x.flight]...)
	for _, msg := range x.st[x.flight:] {
		if x.mail.from(msg) != from || x.mail.to(msg) != to {
			x.next = append(x.next, msg)
		}
	}
}
