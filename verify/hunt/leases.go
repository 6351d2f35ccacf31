package hunt

import (
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
)

// # Leases among members
//
// The rules are those of package check: see there, leases.go.

func (m *model[M]) hasLapsed(p, q int) bool { return m.procs[p].lapsed&(1<<q) != 0 }
func (m *model[M]) hasEnded(p, q int) bool  { return m.procs[p].ended&(1<<q) != 0 }

// unleased is a life of member p that begins: it has no sessions.
func (m *model[M]) unleased(p int) {
	l := &m.procs[p]
	l.lapsed, l.ended, l.revoked = (1<<m.sys.N-1)&^(1<<p), 0, 0
	l.known = fresh(l.known, m.sys.N)
}

// beginSessions restores all members to each other.
func (m *model[M]) beginSessions() {
	for p := range m.sys.N {
		for q := range m.sys.N {
			if p != q {
				m.restore(p, q)
			}
		}
	}
}

// ahead reports whether p was restored to a session with q, and q was not yet.
func (m *model[M]) ahead(p, q int) bool {
	a, b := &m.procs[p], &m.procs[q]
	return a.process != nil && b.process != nil && !m.hasLapsed(p, q) && a.known[q] == b.life && m.hasEnded(q, p)
}

// broken reports whether the session of p with q, in which p had no Lapsed yet, is broken.
func (m *model[M]) broken(p, q int) bool {
	a, b := &m.procs[p], &m.procs[q]
	return b.process == nil || a.known[q] != b.life || m.hasLapsed(q, p) && !m.hasEnded(q, p) || (a.revoked>>q|b.revoked>>p)&1 != 0
}

// canEnd and canResume report whether p may have Ended of q, or Restore.
func (m *model[M]) canEnd(p, q int) bool {
	gone := m.procs[q].process == nil
	return p != q && m.procs[p].process != nil && m.hasLapsed(p, q) && !m.hasEnded(p, q) && (gone || m.hasLapsed(q, p))
}

func (m *model[M]) canResume(p, q int) bool {
	up := m.procs[p].process != nil && m.procs[q].process != nil
	return p != q && up && m.hasEnded(p, q) && (m.hasEnded(q, p) || m.ahead(q, p))
}

// breaks lets member p have Lapsed of q, if it had none in their session.
func (m *model[M]) breaks(p, q int) bool {
	if p == q || q >= m.sys.N || m.procs[p].process == nil || m.hasLapsed(p, q) {
		return false
	}
	m.drop(q, p)
	if m.procs[q].process == nil || m.hasLapsed(q, p) {
		m.drop(p, q)
	}
	l := &m.procs[p]
	l.lapsed |= 1 << q
	l.revoked &^= 1 << q
	l.known[q] = 0
	m.input(p, protocol.Input{Kind: protocol.Suspect, From: protocol.ID(q), Arg: protocol.Lapsed})
	return true
}

// ends lets member p have Ended of q.
func (m *model[M]) ends(p, q int) bool {
	if !m.canEnd(p, q) {
		return false
	}
	m.procs[p].ended |= 1 << q
	m.input(p, protocol.Input{Kind: protocol.Suspect, From: protocol.ID(q), Arg: protocol.Ended})
	return true
}

// revoke lets member p break its session with q.
func (m *model[M]) revoke(p int, to protocol.ID) bool {
	if !m.mutual || to == protocol.ID(p) || to >= protocol.ID(m.sys.N) {
		return false
	}
	if !m.hasLapsed(p, int(to)) {
		m.procs[p].revoked |= 1 << to
	}
	return true
}

// severed reports whether what one process sends to another one is lost.
func (m *model[M]) severed(from, to int) bool {
	if !m.mutual {
		return m.apart(from, to) || m.apart(to, from)
	}
	return m.hasLapsed(from, to) || m.hasLapsed(to, from) && !m.ahead(from, to)
}

// withheld reports whether a message on its way waits for a session.
func (m *model[M]) withheld(f *message[M]) bool {
	return m.mutual && m.hasLapsed(int(f.to), int(f.from))
}

// unheld drops what member p sent and others hold for a session: p crashed.
func (m *model[M]) unheld(p int) {
	for q := range m.sys.N {
		if q != p && m.hasLapsed(q, p) {
			m.drop(p, q)
		}
	}
}

// leaseNews reports whether member i, or another one of it, is to be told of a lease.
func (m *model[M]) leaseNews(i int) bool {
	for q := range m.sys.N {
		if q != i && (m.must(i, q) != "" || m.must(q, i) != "") {
			return true
		}
	}
	return false
}

// must is what member p must be told of q, "": nothing.
func (m *model[M]) must(p, q int) scenario.Verb {
	switch {
	case p == q || m.procs[p].process == nil:
	case !m.hasLapsed(p, q) && m.broken(p, q):
		return scenario.Lapse
	case m.canEnd(p, q):
		return scenario.Suspect
	case m.canResume(p, q):
		return scenario.Restore
	}
	return ""
}

// tellLease lets a member be told what it must of its leases, in a storm at random
// moments.
func (w *walker[M]) tellLease() bool {
	first := w.r.IntN(w.sys.N * w.sys.N)
	for k := range w.sys.N * w.sys.N {
		i := (first + k) % (w.sys.N * w.sys.N)
		p, q := i/w.sys.N, i%w.sys.N
		if w.procs[p].process == nil || w.stands(p) {
			continue
		}
		if v := w.must(p, q); v != "" {
			return w.take(choice{verb: v, a: int32(p), b: int32(q)})
		}
	}
	return false
}

// broke is how many sessions of a run broke by themselves.
func (m *model[M]) broke(run []choice) (k int) {
	if !m.mutual {
		return 0
	}
	m.reset()
	for _, c := range run {
		if c.verb == scenario.Lapse && !m.broken(int(c.a), int(c.b)) {
			k++
		}
		m.do(&c)
	}
	return k
}
