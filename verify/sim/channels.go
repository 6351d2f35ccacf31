package sim

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A flight is one message on its way, to one process or to all.
type flight[M any] struct {
	msg    M
	from   uint32
	copies uint32 // not yet delivered; of a free one, the next free one
}

const none = ^uint32(0)

// transmission is how long a message takes by its size.
func (s *simulator[M]) transmission(m *M) int64 {
	if s.bit32 == 0 {
		return 0
	}
	return int64(s.bit32 * float64(s.alg.Ints(*m)))
}

// count counts copies of a message.
func (s *simulator[M]) count(from uint32, m *M, copies int) {
	if s.alg.Registers != nil {
		s.found(history.WellFormed, s.Names.Of(protocol.ID(from))+" sends a message, and its algorithm shares memory")
		return
	}
	kind := s.alg.KindOf(*m)
	s.byKind[kind] += copies
	if !s.overhead[kind] {
		s.own += copies
		s.integers += copies * s.alg.Ints(*m)
	}
	if kind == s.setToken {
		if u := s.procs[from].user; u >= 0 {
			s.users[u].slow = true
		}
	}
}

func (s *simulator[M]) send(from uint32, to protocol.ID, m *M, again bool) {
	if to >= protocol.ID(len(s.procs)) || uint32(to) == from {
		s.found(history.WellFormed, fmt.Sprintf("%s sent to %s: itself, or nobody",
			s.Names.Of(protocol.ID(from)), s.Names.Of(to)))
		return
	}
	if again {
		s.Retransmitted++
	} else {
		s.count(from, m, 1)
	}
	if s.procs[to].process == nil {
		return
	}
	s.carry(from, deliver, uint32(to), s.flight(from, m, 1), s.transmission(m))
}

// carry puts a message on its way, to one process or, where one item stands for
// all copies, to all; or an access to a register. Where all take equally long and nothing pauses it follows those
// that are on their way.
func (s *simulator[M]) carry(from uint32, kind uint64, to, slot uint32, transmission int64) {
	for range s.copies(slot) {
		if s.even && s.procs[from].pausedUntil <= s.now {
			s.queue.follow(s.item(s.now+int64(s.cfg.Delay.A), kind, to, slot))
		} else {
			s.push(s.arrival(from, to, transmission), kind, to, slot)
		}
	}
}

// isLossy reports whether messages may be lost or repeated.
func (s *simulator[M]) isLossy() bool { return s.cfg.Loss > 0 || s.cfg.Dup > 0 }

// copies draws how many copies arrive of the one in slot.
func (s *simulator[M]) copies(slot uint32) int {
	switch {
	case !s.isLossy():
		return 1
	case s.losses.Float64() < s.cfg.Loss:
		s.Lost++
		s.land(slot)
		return 0
	case s.losses.Float64() < s.cfg.Dup:
		s.Duplicated++
		s.flights[slot].copies++
		return 2
	}
	return 1
}

func (s *simulator[M]) broadcast(from uint32, m *M) {
	copies := s.cfg.N
	if int(from) < s.cfg.N {
		copies--
	}
	if copies == 0 || s.crowded() {
		return
	}
	s.count(from, m, copies)
	slot, transmission := s.flight(from, m, uint32(copies)), s.transmission(m)
	if s.oneItem && !s.isLossy() {
		s.carry(from, broadcast, 0, slot, transmission)
		s.seq += uint64(s.cfg.N) // the copies' numbers, as if they were items
		return
	}
	for to := range uint32(s.cfg.N) {
		if to != from {
			s.carry(from, deliver, to, slot, transmission)
		}
	}
}

// arrival draws when a message that process from sends now reaches to.
func (s *simulator[M]) arrival(from, to uint32, transmission int64) int64 {
	p := &s.procs[from]
	at := max(s.now, p.pausedUntil) + s.delay(&p.random.delay) + transmission
	if s.ordered {
		for int(to) >= len(p.last) {
			p.last = append(p.last, 0)
		}
		at = max(at, p.last[to])
		p.last[to] = at
	}
	return at
}

func (s *simulator[M]) flight(from uint32, m *M, copies uint32) uint32 {
	slot := s.free
	if slot == none {
		s.flights = append(s.flights, flight[M]{*m, from, copies})
		return uint32(len(s.flights) - 1)
	}
	f := &s.flights[slot]
	s.free = f.copies
	f.msg, f.from, f.copies = *m, from, copies
	return slot
}

// land takes one copy of a message off its way.
func (s *simulator[M]) land(slot uint32) {
	f := &s.flights[slot]
	if f.copies--; f.copies == 0 {
		f.copies, s.free = s.free, slot
	}
}

func (s *simulator[M]) arriveAtAll(it item) {
	from := s.flights[it.slot].from
	for to := range uint32(s.cfg.N) {
		if to != from {
			s.arrive(item{it.at, it.key + uint64(to)<<kindBits - broadcast + deliver, to, it.slot})
		}
	}
}

// arrive delivers a message, unless something still holds it up.
func (s *simulator[M]) arrive(it item) {
	f := &s.flights[it.slot]
	from, p := f.from, &s.procs[it.to]
	if p.process == nil || p.died > 0 && it.key>>kindBits <= p.died {
		s.land(it.slot)
		return
	}
	if until := s.heldUntil(from, it.to); until > s.now {
		s.again(it, until)
		return
	}
	if s.Mutual {
		if yes, held := s.takes(from, it); !yes {
			if !held {
				s.land(it.slot)
			}
			return
		}
	} else if len(s.faults.apart) > 0 && s.lost(from, it) {
		s.land(it.slot)
		return
	}
	s.land(it.slot)
	if s.log != nil {
		s.logVerb(scenario.Deliver, from, it.to, s.Names.Text(s.alg.Text(f.msg)))
	}
	s.step(it.to, protocol.NewReceive(protocol.ID(from)), &f.msg)
	if len(s.faults.suspected) == 0 {
		return
	}
	if by := s.procs[from].suspectedBy; int(it.to) < len(by) && by[it.to] {
		s.suspects(it.to, from)
	}
}
