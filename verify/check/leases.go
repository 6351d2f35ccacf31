package check

import "github.com/poundlock/poundlock/protocol"

// # Leases among members
//
// Two members have a session, or each of them knows in part or in full that there is none:
// local.lapsed says at whom it had Lapsed, and local.ended at whom it had Ended, since the
// last Restore. A session breaks where one of the two gets Lapsed: by a budget, or because
// the other one crashed, or was told, or one of them revoked it. What is left then must
// happen, at moments of its own. A member that was restored before the other one
// has a session already: what it sends is held until the other one is restored, too.

// hasLapsed and hasEnded report whether l had Lapsed or Ended of member q since Restore.
func (l *local) hasLapsed(q int) bool { return l.lapsed&(1<<q) != 0 }
func (l *local) hasEnded(q int) bool  { return l.ended&(1<<q) != 0 }

// unleased is a life that begins: it has no sessions.
func (s *space) unleased(l *local) {
	l.lapsed = (1<<s.members - 1) &^ (1 << l.proc)
	l.known = make([]uint64, s.members)
}

// suspects notes in l a Suspect of member q, and returns its argument.
func (l *local) suspects(v verb, q uint64) uint64 {
	if v == suspect {
		l.ended |= 1 << q
		return protocol.Ended
	}
	l.lapsed |= 1 << q
	l.revoked &^= 1 << q
	l.know(q, 0)
	return protocol.Lapsed
}

// restores notes in l a session with a life of member q.
func (l *local) restores(q, life uint64) {
	l.lapsed &^= 1 << q
	l.ended &^= 1 << q
	l.know(q, life)
}

func (l *local) know(q, life uint64) {
	known := make([]uint64, len(l.known))
	copy(known, l.known)
	known[q] = life
	l.known = known
}

// revokes notes in l that its member revoked a session with member q, if there is one.
func (l *local) revokes(q protocol.ID) {
	if !l.hasLapsed(int(q)) {
		l.revoked |= 1 << q
	}
}

// ahead reports whether p was restored to a session with q, and q was not yet.
func (s *space) ahead(st []uint32, p, q int) bool {
	l, other := &s.locals[st[1+p]], &s.locals[st[1+q]]
	return !s.absent(st, p) && !s.absent(st, q) && !l.hasLapsed(q) && l.known[q] == other.life && other.hasEnded(p)
}

// broken reports whether the session of p with q, in which p had no Lapsed yet, is broken.
func (s *space) broken(st []uint32, p, q int) bool {
	if s.absent(st, q) {
		return true
	}
	l, other := &s.locals[st[1+p]], &s.locals[st[1+q]]
	return l.known[q] != other.life || other.hasLapsed(p) && !other.hasEnded(p) || (l.revoked>>q|other.revoked>>p)&1 != 0
}

// leaseSteps appends what the leases among members do.
func (x *worker) leaseSteps(list []action) []action {
	st := x.st
	for p := range x.members {
		if x.absent(st, p) {
			continue
		}
		l := &x.locals[st[1+p]]
		for q := range x.members {
			gone := x.absent(st, q)
			a := action{a: uint8(p), b: uint8(q)}
			switch {
			case q == p:
				continue
			case !l.hasLapsed(q) && x.broken(st, p, q):
				a.verb = follow
			case !l.hasLapsed(q) && x.calm && left(st, suspectBudget) > 0:
				a.verb = lapse
			case !l.hasLapsed(q):
				continue
			case !l.hasEnded(q) && (gone || x.locals[st[1+q]].hasLapsed(p)):
				a.verb = suspect
			case l.hasEnded(q) && !gone && (x.locals[st[1+q]].hasEnded(p) || x.ahead(st, q, p)):
				a.verb = restore
			default:
				continue
			}
			list = append(list, a)
		}
	}
	return list
}

// lapses lets member a.a have Lapsed of a.b: what one of the two sent to one that had it
// is lost.
func (x *worker) lapses(a action) (o outcome, known bool) {
	p, q := int(a.a), int(a.b)
	if o.move, known = x.move(x.st[1+p], a.verb, uint64(q)); !known {
		return o, false
	}
	both := x.absent(x.st, q) || x.locals[x.st[1+q]].hasLapsed(p)
	x.next = append(x.next[:0], x.st[:x.flight]...)
	for _, msg := range x.st[x.flight:] {
		from, to := x.mail.from(msg), x.mail.to(msg)
		if (from != q || to != p) && !(both && from == p && to == q) {
			x.next = append(x.next, msg)
		}
	}
	return x.finish(a, o, p)
}

// unheld takes what member p sent and others hold for a session out of the vector being
// built: p crashed.
func (x *worker) unheld(p int) {
	kept := x.next[:x.flight]
	for _, msg := range x.next[x.flight:] {
		to := x.mail.to(msg)
		if x.mail.from(msg) != p || x.absent(x.st, to) || !x.locals[x.st[1+to]].hasLapsed(p) {
			kept = append(kept, msg)
		}
	}
	x.next = kept
}

// severed reports whether what one process sends to another one is lost.
func (s *space) severed(st []uint32, from, to int) bool {
	if !s.mutual {
		return s.apart(st, from, to) || s.apart(st, to, from)
	}
	if s.locals[st[1+from]].hasLapsed(to) {
		return true
	}
	return s.locals[st[1+to]].hasLapsed(from) && !s.ahead(st, from, to)
}

// withheld reports whether messages on their way to a member wait for a session.
func (s *space) withheld(st []uint32, from, to uint8) bool {
	return s.mutual && !s.absent(st, int(to)) && s.locals[st[1+to]].hasLapsed(int(from))
}

// leaseNews reports whether member i, or another one of it, is to be told of a lease.
func (x *worker) leaseNews(i int) bool {
	for _, a := range x.leaseSteps(nil) {
		if a.verb != lapse && (int(a.a) == i || int(a.b) == i) {
			return true
		}
	}
	return false
}

// beginSessions restores all members to each other. What a member sends to one that was not
// restored yet is held for it.
func (x *worker) beginSessions(apply func(*move) *problem) *problem {
	for p := range x.members {
		for q := range x.members {
			if p == q {
				continue
			}
			n, _ := x.move(x.next[1+p], restore, uint64(q)|1<<8)
			if problem := apply(&x.moves[n]); problem != nil {
				return problem
			}
		}
	}
	return nil
}
