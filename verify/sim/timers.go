package sim

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A timer has at most one live item in the queue. When it is set later than that
// item, the item stays and moves on when it comes up: a timer that is set again
// and again, as time-outs are, costs no more than one item.
type timer struct {
	name   uint32
	at     int64  // when it fires, -1: not set
	key    uint64 // of its live item, 0: none
	itemAt int64
}

func (s *engine) setTimer(p *process, id uint32, a protocol.Act) {
	if a.After <= 0 {
		s.found(history.WellFormed, fmt.Sprintf("%s sets timer %d to fire %v from now", s.Names.Of(protocol.ID(id)), a.Timer, time.Duration(a.After)))
	}
	at := s.now + a.After
	if a.Arg > 0 {
		at += int64(p.random.jitter.Uint64N(a.Arg + 1))
	}
	k := 0
	for k < len(p.timers) && p.timers[k].name != a.Timer {
		k++
	}
	if k == len(p.timers) {
		p.timers = append(p.timers, timer{name: a.Timer})
	}
	t := &p.timers[k]
	t.at = at
	if t.key == 0 || t.itemAt > at {
		t.key, t.itemAt = s.push(at, timeout, id, uint32(k)), at
	}
}

func (s *engine) timeout(it item) {
	p := &s.procs[it.to]
	if !p.up || int(it.slot) >= len(p.timers) {
		return
	}
	t := &p.timers[it.slot]
	switch {
	case t.key != it.key: // of a former life, or replaced by an earlier one
		return
	case t.at < 0:
		t.key = 0
		return
	case p.pausedUntil > s.now:
		t.itemAt = p.pausedUntil
		s.again(it, p.pausedUntil)
		return
	case t.at > s.now:
		t.key, t.itemAt = s.push(t.at, timeout, it.to, it.slot), t.at
		return
	}
	t.at, t.key = -1, 0
	name := t.name
	if s.log != nil {
		s.logStep(scenario.Step{Verb: scenario.Timeout, Procs: []protocol.ID{protocol.ID(it.to)}, Timer: name})
	}
	s.input(it.to, protocol.Input{Kind: protocol.Timeout, Timer: name})
}
