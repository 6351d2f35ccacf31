package sim

import (
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// # Leases among members
//
// Two members have a session, until a pause, a partition or a cut keeps them apart for
// longer than a lease, or one of them revokes it: then both get Lapsed, a moment after the
// lease, and after both of them Ended; and Restore when they hear each other again. A crash
// is noticed as by other detectors, after Config.Detect.

// An end is what a member knows of its session with another one.
type end struct {
	world.Side
	began uint64 // sequence number at the last Restore, 0: there was none
	left  uint64 // sequence number at the last Lapsed
	held  []item // messages for the session that the other one began already
}

// endOf returns the end of member p of its session with member q.
func (s *engine) endOf(p, q uint32) *end {
	e := s.faults.ends[pair{p, q}]
	if e == nil {
		e = new(end)
		s.faults.ends[pair{p, q}] = e
	}
	return e
}

func (s *engine) isUp(p uint32) bool { return s.procs[p].up }

// side is what world takes for that end.
func (s *engine) side(p, q uint32) world.Side {
	side := s.endOf(p, q).Side
	side.Gone = !s.isUp(p)
	return side
}

// ahead reports whether p began a session with q, and q has not yet.
func (s *engine) ahead(p, q uint32) bool { return s.side(p, q).Ahead(s.side(q, p)) }

// told is what member p may be told of member q.
func (s *engine) told(p, q uint32) world.Notices { return s.side(p, q).Notices(s.side(q, p)) }

// beginSessions restores all members to each other.
func (s *engine) beginSessions() {
	for _, p := range s.faults.up {
		for _, q := range s.faults.up {
			if p != q {
				s.endOf(p, q).began = s.seq
				s.restored(p, q)
			}
		}
	}
}

// lapses lets member p have Lapsed of member q, if their session is broken.
func (s *engine) lapses(p, q uint32) {
	n, a := s.told(p, q), s.faults.apart[s.between(p, q)]
	if n&world.ToLapse != 0 || n&world.MayLapse != 0 && a != nil && a.lapses {
		s.lapseNow(p, q)
	}
}

// lapseNow breaks the whole session of p with q, or what is left of it at p.
func (s *engine) lapseNow(p, q uint32) {
	e := s.endOf(p, q)
	e.Side, e.left = world.Side{Lapsed: true}, s.seq
	s.release(s.endOf(q, p))
	s.totals.LeasesLapsed++
	s.tellLapsed(p, q)
	s.proceed(p, q)
}

// ends lets member p have Ended of member q, if both had Lapsed.
func (s *engine) ends(it item) {
	p, q := it.to, it.slot
	if s.told(p, q)&world.ToSuspect == 0 {
		return
	}
	if until := s.procs[p].pausedUntil; until > s.now {
		s.again(it, until)
		return
	}
	s.endOf(p, q).Ended = true
	s.logVerb(scenario.Suspect, p, q, "")
	s.input(p, protocol.NewEnded(protocol.ID(q)))
	s.proceed(p, q)
}

// resumes begins a session of member p with member q, if both had Ended.
func (s *engine) resumes(it item) {
	p, q := it.to, it.slot
	if s.told(p, q)&world.ToRestore == 0 {
		return
	}
	if until := s.meet(p, q); until > s.now {
		s.again(it, until)
		return
	}
	if !s.ahead(q, p) { // else the other one may have revoked the new one
		delete(s.faults.apart, s.between(p, q))
	}
	e := s.endOf(p, q)
	e.Side, e.began = world.Side{}, s.seq
	s.release(e)
	s.restored(p, q)
}

// proceed schedules what comes next at the two ends of a session.
func (s *engine) proceed(p, q uint32) {
	for _, k := range [...]pair{{p, q}, {q, p}} {
		kind := lapse
		switch s.told(k.client, k.member) & world.Must {
		case 0:
			continue
		case world.ToSuspect:
			kind = suspect
		case world.ToRestore:
			kind = restore
		}
		s.push(s.now+s.detectorDelay(), kind, k.client, k.member)
	}
}

// release lets messages that were held arrive now, or be lost.
func (s *engine) release(e *end) {
	held := e.held
	e.held = nil
	for _, it := range held {
		s.again(it, s.now)
	}
}

// takes reports whether a message that is due now arrives, as far as sessions go; one that
// does not is lost, or held.
func (s *engine) takes(from uint32, it item) (yes, held bool) {
	sent := it.key >> kindBits
	e, r := s.endOf(from, it.to), s.endOf(it.to, from)
	switch {
	case sent <= e.began || e.Lapsed && sent > e.left:
		return false, false
	case !r.Lapsed:
		return !s.ahead(it.to, from), false // else it was sent in an earlier session
	case s.ahead(from, it.to):
		r.held = append(r.held, it)
		return false, true
	}
	return false, false
}

// bury ends the sessions of member p, which has crashed.
func (s *engine) bury(p uint32) {
	for q := range uint32(s.cfg.N) {
		if q == p {
			continue
		}
		mine, e := s.endOf(p, q), s.endOf(q, p)
		if !mine.Lapsed {
			mine.left = s.seq
		}
		mine.Side = world.Side{Lapsed: true}
		s.release(mine)
		s.release(e)
		switch s.told(q, p) {
		case world.ToLapse:
			s.push(s.now+int64(s.cfg.Detect)+s.detectorDelay(), lapse, q, p)
		case world.ToSuspect:
			s.push(s.now+int64(s.cfg.Detect), suspect, q, p)
		}
	}
}

// revoke breaks the session of p with q as if they heard nothing of each other.
func (s *engine) revoke(p, q uint32) {
	if s.log != nil {
		s.note(s.Names.Of(protocol.ID(p)) + " revokes the lease of " + s.Names.Of(protocol.ID(q)))
	}
	if !s.endOf(p, q).Lapsed {
		s.separate(p, q, s.now+int64(s.cfg.Lease)+1)
	}
}
