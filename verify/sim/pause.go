package sim

import (
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
)

// tellLapsed tells a process that its lease at a member has lapsed; where it pauses, when it goes
// on. Its user counts as outside until then: see package world.
func (s *engine) tellLapsed(id, member uint32) {
	s.logVerb(scenario.Lapse, id, member, "")
	if p := &s.procs[id]; slices.Contains(s.asleep, id) {
		p.missed = append(p.missed, member)
		if s.isInside(id) && len(p.missed) == 1 {
			s.monitor.Lease(int(p.user), s.now, s.now)
		}
		return
	}
	s.input(id, protocol.NewLapsed(protocol.ID(member)))
}

// awake lets those processes go on whose pauses are over, before anything else happens at this
// moment: each looks at its leases first.
func (s *engine) awake() {
	for k := 0; k < len(s.asleep); k++ {
		id := s.asleep[k]
		p := &s.procs[id]
		if p.up && p.pausedUntil > s.now {
			continue
		}
		s.asleep = slices.Delete(s.asleep, k, k+1)
		if k--; !p.up {
			continue
		}
		missed := p.missed
		p.missed = nil
		s.logVerb(scenario.Resume, id, 0, "")
		for _, j := range missed {
			s.input(id, protocol.NewLapsed(protocol.ID(j)))
		}
		if len(missed) > 0 && s.isInside(id) { // it believes that it still is
			s.monitor.Lease(int(s.procs[id].user), s.now, math.MaxInt64)
		}
	}
}

// isInside reports whether the user of a process is inside, as far as it was told.
func (s *engine) isInside(id uint32) bool {
	k := int(s.procs[id].user)
	return k >= 0 && s.monitor.Section(k) == protocol.InCrit
}
