package check

import "github.com/poundlock/poundlock/protocol"

// detect takes the steps of the failure detector.
func (s *space) detect(st []uint32, f func(visit)) {
	if s.info.Detector == protocol.NoDetector {
		return
	}
	for j := range s.members {
		if st[1+j] == 0 {
			continue
		}
		for u := range s.total {
			if !s.user[u] || u == j {
				continue
			}
			n := st[1+u]
			if n == 0 {
				s.local(st, action{verb: suspect, a: j, b: u}, uint64(u), -1, f)
			}
			if n == 0 || !s.leases {
				continue
			}
			l, life := s.locals[n], s.locals[st[1+j]].life
			lapsed, ended := l.lapsed&(1<<j) != 0, l.ended&(1<<j) != 0
			if lapsed && !ended {
				s.endLease(st, j, u, f)
			}
			if l.known[j] != life || ended {
				s.local(st, action{verb: restore, a: u, b: j}, uint64(j)|life<<8, -1, f)
			}
			if !lapsed && s.calm && left(st, suspectBudget) > 0 {
				s.lapse(st, u, j, f)
			}
		}
	}
}

// lapse ends client u's lease at member j on the side of the client, which from
// now on sends nothing to j and takes nothing from it.
func (s *space) lapse(st []uint32, u, j int, f func(visit)) {
	n := s.move(st[1+u], lapse, uint64(j))
	s.next = s.without(st, j, u)
	s.next[0] -= 1 << suspectBudget
	s.finish(action{verb: lapse, a: u, b: j}, n, u, f)
}

// endLease ends it on the side of the member: what the client sent before and has
// not arrived is lost.
func (s *space) endLease(st []uint32, j, u int, f func(visit)) {
	n := s.move(st[1+j], suspect, uint64(u))
	s.next = s.without(st, u, j)
	l := s.locals[st[1+u]]
	l.ended |= 1 << j
	s.next[1+u] = s.intern(l)
	s.finish(action{verb: suspect, a: j, b: u}, n, j, f)
}

// without returns a copy of st without the messages of one channel, in s.next.
func (s *space) without(st []uint32, from, to int) []uint32 {
	next := append(s.next[:0], st[:1+s.total]...)
	for _, msg := range st[1+s.total:] {
		if s.mail.from[msg] != from || s.mail.to[msg] != to {
			next = append(next, msg)
		}
	}
	return next
}

// faults takes the faults that budgets allow. To drain is none, but as free.
func (s *space) faults(st []uint32, f func(visit)) {
	for i := 0; i < s.members && s.calm && left(st, amnesiaBudget) > 0; i++ {
		if st[1+i] != 0 {
			s.amnesia(st, i, f)
		}
	}
	for i := 0; i < s.members && left(st, drainBudget) > 0; i++ {
		if st[1+i] != 0 {
			s.local(st, action{verb: drain, a: i}, 0, drainBudget, f)
		}
	}
	for i := 0; i < s.total && left(st, crashBudget) > 0; i++ {
		if !s.user[i] || st[1+i] == 0 {
			continue
		}
		s.next = append(s.next[:0], st[:1+s.total]...)
		s.next[0] -= 1 << crashBudget
		s.next[1+i] = 0
		for _, msg := range st[1+s.total:] {
			if s.mail.to[msg] != i {
				s.next = append(s.next, msg)
			}
		}
		s.next = s.normal(s.next)
		f(visit{action: action{verb: crash, a: i}, next: s.next})
	}
}

// amnesia restarts member i empty. Its user, if it has one, is in its remainder
// section; every user that tries or is inside remembers that i is faulty.
func (s *space) amnesia(st []uint32, i int, f func(visit)) {
	old := &s.locals[st[1+i]]
	s.next = append(s.next[:0], st...)
	s.next[0] -= 1 << amnesiaBudget
	for u := range s.total {
		if n := s.next[1+u]; s.user[u] && u != i && n != 0 {
			if l := s.locals[n]; l.section == protocol.InTry || l.section == protocol.InCrit {
				l.lost |= 1 << i
				s.next[1+u] = s.intern(l)
			}
		}
	}
	a := action{verb: amnesia, a: i}
	s.finish(a, s.rebirth(old.proc, old.entries, old.life), i, f)
}

// rebirth returns the index of the move that New and Start make.
func (s *space) rebirth(i int, entries uint32, life uint64) uint32 {
	key := moveKey{uint32(i), amnesia, uint64(entries)<<32 | life}
	if n, ok := s.moveOf[key]; ok {
		return n
	}
	l := local{proc: i, entries: entries, state: s.m.first(i)}
	if s.leases {
		l.life = life + 1
	}
	n := uint32(len(s.moves))
	s.moves = append(s.moves, s.begin(l))
	s.moveOf[key] = n
	return n
}
