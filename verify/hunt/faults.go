package hunt

import (
	"math/bits"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// suspect: member a suspects user b, which has crashed, or knows that its lease
// here lapsed; then what it sent before and has not arrived is lost.
func (m *model[M]) suspect(c *choice) bool {
	a, b := int(c.a), int(c.b)
	if m.mutual {
		return b < m.sys.N && m.ends(a, b)
	}
	if m.peers() {
		possible := m.canDoubt(a, b)
		if possible {
			m.doubt(a, b)
		}
		return possible
	}
	if !m.canSuspect(a, b) {
		return false
	}
	if m.procs[b].process == nil {
		m.procs[b].suspected |= 1 << a
	} else {
		m.drop(b, a)
		m.procs[b].ended |= 1 << a
	}
	m.input(a, protocol.Input{Kind: protocol.Suspect, From: protocol.ID(b)})
	return true
}

func (m *model[M]) canSuspect(a, b int) bool {
	if m.alg.Detector == protocol.NoDetector || a >= m.sys.N || a == b || !m.isUser(b) || m.procs[a].process == nil {
		return false
	}
	u := &m.procs[b]
	return u.process == nil || u.lapsed&(1<<a) != 0 && u.ended&(1<<a) == 0
}

func (m *model[M]) canLapse(u, j int) bool {
	return m.leases && u >= m.sys.N && j < m.sys.N && m.procs[j].process != nil && m.procs[u].lapsed&(1<<j) == 0
}

func (m *model[M]) lapse(u, j int) {
	m.drop(j, u)
	m.procs[u].lapsed |= 1 << j
	m.input(u, protocol.Input{Kind: protocol.Suspect, From: protocol.ID(j)})
}

func (m *model[M]) canRestore(u, j int) bool {
	if !m.leases || u < m.sys.N || j >= m.sys.N || m.procs[j].process == nil || m.procs[u].process == nil {
		return false
	}
	return m.procs[u].known[j] != m.procs[j].life || m.procs[u].ended&(1<<j) != 0
}

func (m *model[M]) restore(u, j int) {
	p, life := &m.procs[u], m.procs[j].life
	p.lapsed &^= 1 << j
	p.ended &^= 1 << j
	p.known[j] = life
	m.input(u, protocol.Input{Kind: protocol.Restore, From: protocol.ID(j), Arg: life})
}

func (m *model[M]) amnesia(j int) {
	for u := range m.procs {
		p := &m.procs[u]
		if u != j && p.process != nil && m.isUser(u) && (m.users[u] == protocol.InTry || m.users[u] == protocol.InCrit) {
			p.lost[j] = true
		}
		p.suspected &^= 1 << j
	}
	m.forgot |= 1 << j
	p := &m.procs[j]
	p.timers = p.timers[:0]
	clear(p.lost)
	m.users[j] = protocol.InRem
	if m.lives {
		p.life++
	}
	m.stepping = true
	p.process = m.alg.New(protocol.ID(j), m.sys.Config)
	m.stepping = false
	m.input(j, protocol.Input{Kind: protocol.Start, Arg: p.life})
}

func (m *model[M]) crash(u int) {
	p := &m.procs[u]
	life := p.life
	*p = process[M]{timers: p.timers[:0], open: p.open[:0], known: p.known, lost: p.lost}
	if m.peers() {
		p.life = life
		for i := range m.procs {
			m.procs[i].told &^= 1 << u
		}
	}
	if m.mutual {
		m.unheld(u)
	}
	m.users.Crash(protocol.ID(u))
	m.crashWeak(u)
	m.flight = slices.DeleteFunc(m.flight, func(f message[M]) bool { return int(f.to) == u })
}

// unsettled is Algorithm.Unsettled now, which the algorithm must have.
func (m *model[M]) unsettled() int {
	return m.alg.Unsettled(m.processes())
}

// processes are those that are up, by id.
func (m *model[M]) processes() []protocol.Process[M] {
	for i := range m.procs {
		m.bare[i] = m.procs[i].process
	}
	return m.bare
}

// room reports whether the budget allows that member j forgets, or with j < 0 that
// a lease lapses.
func (m *model[M]) room(j int) bool {
	if m.alg.Unsettled != nil {
		return m.unsettled() < m.sys.budget
	}
	if m.lives && !m.leases && j >= 0 {
		// Nobody is told of a new life: what is sent to the one before is lost until the
		// two have met, which may be in any later epoch.
		return bits.OnesCount64(m.forgot|1<<j) <= m.sys.budget
	}
	for u := range m.procs {
		if m.users[u] != protocol.InTry && m.users[u] != protocol.InCrit {
			continue
		}
		k := 0
		for i, lost := range m.procs[u].lost {
			if lost || i == j {
				k++
			}
		}
		if k > m.sys.budget {
			return false
		}
	}
	return j >= 0 && m.sys.budget > 0
}
