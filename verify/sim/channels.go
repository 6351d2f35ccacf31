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
	if s.engine.bit32 == 0 {
		return 0
	}
	return int64(s.engine.bit32 * float64(s.alg.Ints(*m)))
}

// count counts copies of a message.
func (s *simulator[M]) count(from uint32, m *M, copies int) {
	e := &s.engine
	if e.Registers != nil {
		e.found(history.WellFormed, e.Names.Of(protocol.ID(from))+" sends a message, and its algorithm shares memory")
		return
	}
	kind := s.alg.KindOf(*m)
	e.byKind[kind] += copies
	if !e.overhead[kind] {
		e.own += copies
		e.integers += copies * s.alg.Ints(*m)
	}
	if kind == e.setToken {
		if u := e.procs[from].user; u >= 0 {
			e.users[u].slow = true
		}
	}
}

func (s *simulator[M]) send(from uint32, to protocol.ID, m *M, again bool) {
	e := &s.engine
	if to >= protocol.ID(len(e.procs)) || uint32(to) == from {
		e.found(history.WellFormed, fmt.Sprintf("%s sent to %s: itself, or nobody",
			e.Names.Of(protocol.ID(from)), e.Names.Of(to)))
		return
	}
	if again {
		e.Retransmitted++
	} else {
		s.count(from, m, 1)
	}
	if !e.procs[to].up {
		return
	}
	s.carry(from, deliver, uint32(to), s.flight(from, m, 1), s.transmission(m))
}

// carry puts a message on its way, to one process or, where one item stands for
// all copies, to all.
func (s *simulator[M]) carry(from uint32, kind uint64, to, slot uint32, transmission int64) {
	copies := 1
	if s.engine.isLossy() {
		copies = s.copies(slot)
	}
	for range copies {
		s.engine.leave(from, kind, to, slot, transmission)
	}
}

// leave lets one copy of a message leave, or an access to a register begin. Where all take equally long and nothing pauses it
// follows those that are on their way.
func (s *engine) leave(from uint32, kind uint64, to, slot uint32, transmission int64) {
	if s.even && s.procs[from].pausedUntil <= s.now {
		s.queue.follow(s.item(s.now+int64(s.cfg.Delay.A), kind, to, slot))
	} else {
		s.push(s.arrival(from, to, transmission), kind, to, slot)
	}
}

// isLossy reports whether messages may be lost or repeated.
func (s *engine) isLossy() bool { return s.cfg.Loss > 0 || s.cfg.Dup > 0 }

// copies draws how many copies arrive of the one in slot, where messages may be lost or repeated.
func (s *simulator[M]) copies(slot uint32) int {
	switch {
	case s.engine.losses.Float64() < s.engine.cfg.Loss:
		s.engine.Lost++
		s.land(slot)
		return 0
	case s.engine.losses.Float64() < s.engine.cfg.Dup:
		s.engine.Duplicated++
		s.flights[slot].copies++
		return 2
	}
	return 1
}

func (s *simulator[M]) broadcast(from uint32, m *M) {
	e := &s.engine
	copies := e.cfg.N
	if int(from) < e.cfg.N {
		copies--
	}
	if copies == 0 || e.crowded(len(s.flights)) {
		return
	}
	s.count(from, m, copies)
	slot, transmission := s.flight(from, m, uint32(copies)), s.transmission(m)
	if e.oneItem && !e.isLossy() {
		s.carry(from, broadcast, 0, slot, transmission)
		e.seq += uint64(e.cfg.N) // the copies' numbers, as if they were items
		return
	}
	for to := range uint32(e.cfg.N) {
		if to != from {
			s.carry(from, deliver, to, slot, transmission)
		}
	}
}

// arrival draws when a message that process from sends now reaches to.
func (s *engine) arrival(from, to uint32, transmission int64) int64 {
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
	for to := range uint32(s.engine.cfg.N) {
		if to != from {
			s.arrive(item{it.at, it.key + uint64(to)<<kindBits - broadcast + deliver, to, it.slot})
		}
	}
}

// arrive delivers a message, unless something still holds it up.
func (s *simulator[M]) arrive(it item) {
	e := &s.engine
	f := &s.flights[it.slot]
	from, p := f.from, &e.procs[it.to]
	if !p.up || p.died > 0 && it.key>>kindBits <= p.died {
		s.land(it.slot)
		return
	}
	if until := e.heldUntil(from, it.to); until > e.now {
		e.again(it, until)
		return
	}
	if e.Mutual {
		if yes, held := e.takes(from, it); !yes {
			if !held {
				s.land(it.slot)
			}
			return
		}
	} else if len(e.faults.apart) > 0 && e.lost(from, it) {
		s.land(it.slot)
		return
	}
	s.land(it.slot)
	if e.log != nil {
		e.logVerb(scenario.Deliver, from, it.to, e.Names.Text(s.alg.Text(f.msg)))
	}
	s.step(it.to, protocol.NewReceive(protocol.ID(from)), &f.msg)
	if len(e.faults.suspected) == 0 {
		return
	}
	if by := e.procs[from].suspectedBy; int(it.to) < len(by) && by[it.to] {
		e.suspects(it.to, from)
	}
}
