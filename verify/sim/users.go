package sim

import (
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A user is what a run knows of one of its load, through the lives of its processes. The monitor knows its section.
type user struct {
	proc       uint32
	issuing    bool   // it is inside, with an operation open
	operations int    // to issue in this section
	pending    uint64 // key of its next item; another one is stale
	before     int    // simulator.own at the last try
	slow       bool
	rest       int64 // of its hold, after it comes down to a group
}

// done reports whether user u made all of its entries, and left the last one.
func (s *engine) done(u int) bool {
	return s.load.Left(u) == 0 && s.monitor.Section(u) == protocol.InRem
}

// schedule makes user u's next item the only one that counts.
func (s *engine) schedule(u int, kind uint64, after int64) {
	s.users[u].pending = s.push(s.now+after, kind, uint32(u), 0)
}

// ready returns user it.to when its item still counts, and otherwise nil. The
// items of a paused process come when the pause ends.
func (s *engine) ready(it item) *user {
	u := &s.users[it.to]
	if u.pending != it.key {
		return nil
	}
	if until := s.procs[u.proc].pausedUntil; until > s.now {
		s.again(it, until)
		return nil
	}
	return u
}

func (s *engine) try(it item) {
	u := s.ready(it)
	if u == nil {
		return
	}
	in := protocol.NewTry(s.load.Wanted(int(it.to)))
	s.logVerb(scenario.Try, u.proc, 0, in.Data)
	s.judgeRest()
	u.slow, u.before = false, s.own
	s.monitor.Input(int(it.to), s.now, in)
	s.input(u.proc, in)
}

func (s *engine) exit(it item) {
	u := s.ready(it)
	if u == nil {
		return
	}
	if u.operations > 0 {
		s.issue(int(it.to))
		return
	}
	s.logVerb(scenario.Exit, u.proc, 0, "")
	in := protocol.Input{Kind: protocol.Exit}
	s.monitor.Input(int(it.to), s.now, in)
	s.input(u.proc, in)
}

// tell hands crit, rem or ejected to the user of process id.
func (s *engine) tell(id uint32, a protocol.Act) {
	s.logAct(id, a)
	k := int(s.procs[id].user)
	was := s.monitor.Section(k)
	s.monitor.Act(k, s.now, a)
	u := &s.users[k]
	switch {
	case a.Do == protocol.Crit && was == protocol.InTry:
		s.load.Entered(k)
		if int(s.monitor.Entries()) == s.total-s.total/10 {
			s.ninety = s.now
		}
		s.idle = 0
		s.toEnter += s.own - u.before
		if s.setToken >= 0 && a.Arg != 0 && s.now >= s.settled {
			s.FencedEntries++
			if u.slow {
				s.slow++
			}
		}
		if s.Weak {
			u.operations = s.cfg.Operations[k]
		}
		s.stays(k)
		s.passed(int(s.monitor.Entries()))
	case a.Do == protocol.Ejected && was == protocol.InCrit:
		u.issuing, u.operations = false, 0
		s.schedule(k, userExit, 0)
	case a.Do == protocol.Rem && (was == protocol.InTry || was == protocol.InExit):
		if was == protocol.InTry && a.Reason() != 0 {
			if s.GaveUpReasons == nil {
				s.GaveUpReasons = map[string]uint64{}
			}
			s.GaveUpReasons[a.Reason().Error()]++
		}
		if s.load.Left(k) == 0 {
			s.active--
			return
		}
		after := int64(s.load.Thinks(k))
		if was == protocol.InTry && after == 0 { // who is refused at once would try for ever at one moment
			after = int64(s.cfg.Delay.Mean())
		}
		s.schedule(k, userTry, after)
	}
}
