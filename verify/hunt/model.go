package hunt

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A system is what runs: the sizes and what all processes share.
type system struct {
	protocol.Config
	clients   int
	fifo      bool
	registers protocol.Semantics // of a shared memory
	down      []protocol.ID      // members that are never up
	wants     []protocol.Groups  // what a try chooses from; nil: no groups

	budget int  // members that may be unsettled at a time, or forget in an epoch
	spaced bool // a lease that lapses needs room in the budget too
}

// A problem is a violated property.
type problem struct{ property, reason string }

// A model is one system, stepped by the rules of package check: no time, clocks
// that show 0, and whatever is possible may be next. Unlike the checker it keeps
// one state only, as processes and not as bytes, and takes a step in less than a
// microsecond.
type model[M any] struct {
	alg     protocol.Algorithm[M]
	sys     system
	total   int
	leases  bool   // of clients
	mutual  bool   // leases of members at each other
	lives   bool   // members have incarnations
	renews  bool   // a detector that may be wrong tells of new ones
	forgot  uint64 // members that lost their memory in this run
	procs   []process[M]
	users   history.Users
	wanted  []protocol.Groups // by user: with its last try
	granted []protocol.Group  // by user: where it entered last
	flight  []message[M]      // in the order in which they were sent
	out     protocol.Out[M]
	now     int32 // the choice being taken
	part    int32 // how many messages the step has sent
	entries int
	found   *problem
	terms   history.Terms       // of an election: all that were named
	list    []protocol.Register // nil: no memory is shared
	cells   []cell
	weak    weak[M]

	stepping     bool   // inside the algorithm: a panic is its
	text1, text2 []byte // scratch of alike
	crowded      int    // messages in flight from which on stale ones are looked for

	view protocol.View[M]
	bare []protocol.Process[M] // scratch of processes
}

type process[M any] struct {
	process   protocol.Process[M] // nil: absent
	life      uint64
	timers    []uint32
	open      protocol.OpenAccesses
	lapsed    uint64   // of a client, or among members: the members at which its lease lapsed
	ended     uint64   // of these, the members that have suspected the client since, or whose Ended it had
	known     []uint64 // of a client with leases, or among members: the incarnations that it was told of
	revoked   uint64   // among members: those whose lease it revoked, and of whom it had no Lapsed yet
	lost      []bool   // of a user: members that lost their memory during its epoch
	suspected uint64   // of a crashed user: members that need not be told again
	doubts    uint64   // of a member, where there are no clients: the members that it suspects
	told      uint64   // of these, who crashed and need not be named again
	leading   history.Leading
}

func newModel[M any](a protocol.Algorithm[M], s system) *model[M] {
	m := &model[M]{alg: a, sys: s, total: s.N + s.clients, leases: a.Detector == protocol.LeaseDetector && a.Users == protocol.Clients}
	m.mutual = a.Detector == protocol.LeaseDetector && a.Users != protocol.Clients
	m.lives = m.leases || m.mutual || a.Incarnations || a.Tolerates&protocol.Recovery != 0
	m.renews = m.peers() && a.Incarnations && a.Detector == protocol.UnreliableDetector
	m.procs = make([]process[M], m.total)
	m.users = make(history.Users, m.total)
	m.wanted, m.granted = make([]protocol.Groups, m.total), make([]protocol.Group, m.total)
	m.bare = make([]protocol.Process[M], m.total)
	if a.Registers != nil {
		m.list = a.Registers(s.Config)
	}
	m.reset()
	return m
}

// isUser reports whether process i is one that tries.
func (m *model[M]) isUser(i int) bool { return m.alg.Users == protocol.Members || i >= m.sys.N }

// reset begins a run: every process had its Start, and every client with leases
// heard of every member.
func (m *model[M]) reset() {
	defer m.caught()
	m.flight, m.crowded, m.forgot, m.entries, m.found, m.now = m.flight[:0], 0, 0, 0, nil, -1
	clear(m.users)
	m.terms = m.terms[:0]
	m.resetMemory()
	m.resetWeak()
	for i := range m.procs {
		p := &m.procs[i]
		*p = process[M]{timers: p.timers[:0], open: p.open[:0], known: p.known, lost: p.lost}
		if slices.Contains(m.sys.down, protocol.ID(i)) {
			continue
		}
		m.stepping = true
		p.process = m.alg.New(protocol.ID(i), m.sys.Config)
		m.stepping = false
		if m.isUser(i) {
			p.lost = fresh(p.lost, m.sys.N)
		}
		if m.lives {
			p.life = 1
		}
		if m.leases && i >= m.sys.N {
			p.known = fresh(p.known, m.sys.N)
		}
		if m.mutual {
			m.unleased(i)
			p.ended = p.lapsed // as if after a session: the first one begins at once
		}
	}
	for i := range m.procs {
		m.meets(i)
	}
	for i := range m.procs {
		if m.procs[i].process != nil {
			m.input(i, protocol.Input{Kind: protocol.Start, Arg: m.procs[i].life})
		}
	}
	if m.mutual {
		m.beginSessions()
	}
	for i := m.sys.N; m.leases && i < m.total; i++ {
		for j := range m.sys.N {
			if m.procs[j].process != nil {
				m.procs[i].known[j] = 1
				m.input(i, protocol.Input{Kind: protocol.Restore, From: protocol.ID(j), Arg: 1})
			}
		}
	}
}

// fresh returns n zeros, in the memory of s where that is enough.
func fresh[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// caught turns a panic of a process, which its model makes impossible, into a
// problem. Any other panic stays one.
func (m *model[M]) caught() {
	if m.stepping {
		m.stepping = false
		m.report(check.Model, fmt.Sprint("model: panic: ", recover()))
	}
}

func (m *model[M]) report(property, reason string) {
	if m.found == nil {
		m.found = &problem{property, reason}
	}
}

// do takes choice c and reports whether it was possible; else nothing has changed.
// A deliver whose own message is not there takes the oldest one of its kind on its
// channel, so that less depends on what was left out; c then names that one.
func (m *model[M]) do(c *choice) (possible bool) {
	defer m.caught()
	a, b := int(c.a), int(c.b)
	if a >= m.total || b >= m.total {
		return false
	}
	possible, m.now = true, c.id // also of a step that panics
	if c.verb == scenario.Suspect {
		return m.suspect(c)
	}
	switch c.verb { // whose sender may be gone
	case scenario.Deliver:
		return m.deliver(c)
	case scenario.Lose, scenario.Duplicate:
		return m.fail(c)
	case scenario.Recover:
		return m.recovers(c)
	case scenario.Decide:
		return m.decide(c)
	}
	p := &m.procs[a]
	if p.process == nil {
		return false
	}
	switch c.verb {
	case scenario.Try:
		if possible = m.isUser(a) && m.users[a] == protocol.InRem; possible {
			m.calms()
			m.input(a, protocol.Input{Kind: protocol.Try, Data: string(c.wants)})
		}
	case scenario.Cancel:
		if possible = m.users[a] == protocol.InTry; possible {
			m.input(a, protocol.Input{Kind: protocol.Cancel})
		}
	case scenario.Exit:
		if possible = m.users[a] == protocol.InCrit || m.users[a] == protocol.InLost; possible {
			m.input(a, protocol.Input{Kind: protocol.Exit})
		}
	case scenario.Issue:
		possible = m.issue(a)
	case scenario.Hear:
		possible = m.hear(a)
	case scenario.Read, scenario.Begin, scenario.Write:
		possible = m.access(c)
	case scenario.Timeout:
		k := slices.Index(p.timers, c.timer)
		if possible = k >= 0 && !m.waiting(a); possible {
			p.timers = slices.Delete(p.timers, k, k+1)
			m.input(a, protocol.Input{Kind: protocol.Timeout, Timer: c.timer})
		}
	case scenario.Drain:
		if possible = a < m.sys.N; possible {
			m.input(a, protocol.Input{Kind: protocol.Drain})
		}
	case scenario.Lapse:
		if m.mutual {
			return m.breaks(a, b)
		}
		if possible = m.canLapse(a, b) && (!m.sys.spaced || m.room(-1)); possible {
			m.lapse(a, b)
		}
	case scenario.Restore:
		if m.mutual {
			if possible = b < m.sys.N && m.canResume(a, b); possible {
				m.restore(a, b)
			}
			return possible
		}
		if m.peers() {
			if possible = b < m.sys.N && m.canTrust(a, b); possible {
				m.trust(a, b)
			}
			return possible
		}
		if possible = m.canRestore(a, b); possible {
			m.restore(a, b)
		}
	case scenario.Amnesia:
		if possible = a < m.sys.N && m.room(a); possible {
			m.amnesia(a)
		}
	case scenario.Crash:
		if possible = m.mortal(a); possible {
			m.crash(a)
		}
	default:
		return false
	}
	return possible
}

// input gives an event without message to a process.
func (m *model[M]) input(i int, in protocol.Input) {
	var none M
	m.step(i, in, none)
}

func (m *model[M]) step(i int, in protocol.Input, msg M) {
	m.part = 0
	m.react(i, in, msg)
}

// react gives an event to a process, as a step or as a part of one.
func (m *model[M]) react(i int, in protocol.Input, msg M) {
	id, entries := protocol.ID(i), m.entries
	if err := m.users.Input(id, in); err != nil {
		m.report(check.Model, err.Error())
		return
	}
	if in.Kind == protocol.Try {
		m.wanted[i] = protocol.Groups(in.Data)
	}
	m.judgeInput(i, in)
	m.forget()
	p, captures := &m.procs[i], false
	m.out.Reset()
	m.stepping = true
	p.process.Step(protocol.Event[M]{Input: in, Msg: msg}, &m.out)
	m.stepping = false
	for k := range m.out.Effects {
		e := &m.out.Effects[k]
		switch e.Do {
		case protocol.Send:
			if e.To == id || e.To >= protocol.ID(m.total) {
				m.report(check.Model, fmt.Sprintf("model: process %d sends %s to process %d", i, m.alg.Text(e.Msg), e.To))
				return
			}
			m.send(i, int(e.To), e.Msg)
		case protocol.Broadcast:
			for j := range m.sys.N {
				if j != i {
					m.send(i, j, e.Msg)
				}
			}
		case protocol.Crit, protocol.Rem, protocol.Ejected, protocol.Outcome:
			if err := m.users.Act(id, e.Act); err != nil {
				m.report(check.WellFormed, err.Error())
				continue
			}
			if m.judgeAct(i, e.Act); e.Do == protocol.Crit {
				m.enter(id, protocol.Group(e.Data))
			}
		case protocol.SetTimer:
			if !slices.Contains(p.timers, e.Timer) {
				p.timers = append(p.timers, e.Timer)
			}
		case protocol.StopTimer:
			p.timers = slices.DeleteFunc(p.timers, func(t uint32) bool { return t == e.Timer })
		case protocol.Leader:
			m.lead(i, e.Act)
		case protocol.Read, protocol.Write, protocol.Await:
			m.open(i, e.Act)
		case protocol.Revoke:
			if !m.revoke(i, e.To) {
				m.report(check.Model, fmt.Sprintf("model: process %d revokes a lease of process %d, and there is none", i, e.To))
				return
			}
		case protocol.Owner:
		case protocol.Invoke, protocol.Install, protocol.Capture, protocol.Propose, protocol.Resume:
			captures = m.serve(i, e) || captures
		default:
			m.refuse(e.Do)
		}
	}
	switch {
	case m.users[i] == protocol.InRem:
		clear(p.lost)
	case m.entries > entries:
		m.exclusion()
	}
	if captures {
		var none M
		m.react(i, protocol.Input{Kind: protocol.Captured, Data: m.weak.judge.Copy(id)}, none)
	}
}

// refuse reports an effect of no process of this algorithm.
func (m *model[M]) refuse(do protocol.Do) {
	m.report(check.Model, fmt.Sprintf("model: effect %d is none", do))
}

// exclusion reports two users inside, where that is promised.
func (m *model[M]) exclusion() {
	if m.alg.Weak || m.users.Exclusion(m.held()) == nil {
		return
	}
	names, who := m.names(), ""
	for i, s := range m.users {
		if s == protocol.InCrit && who != "" {
			who += " and "
		}
		if s == protocol.InCrit {
			who += names.Of(protocol.ID(i))
		}
	}
	m.report(check.Exclusion, "exclusion: "+who+" are inside")
}

func (m *model[M]) names() scenario.Names {
	return scenario.Names{Members: m.sys.N, Clients: m.alg.Users == protocol.Clients}
}

func (m *model[M]) text(msg M) string { return m.names().Text(m.alg.Text(msg)) }

// judge reports the first invariant that does not hold; name "" means any.
func (m *model[M]) judge(name string) {
	if m.found != nil {
		return
	}
	m.look()
	for _, i := range m.alg.Invariants {
		if name != "" && i.Name != name {
			continue
		}
		if err := i.Err(&m.view); err != nil {
			m.report(i.Name, err.Error())
			return
		}
	}
}

// look brings the view up to date.
func (m *model[M]) look() {
	v := &m.view
	if v.Procs == nil {
		v.Config = m.sys.Config
		v.Procs = make([]protocol.Process[M], m.total)
		v.Lost = make([][]bool, m.total)
		v.InFlight = func(yield func(protocol.Channel, M) bool) {
			for k := range m.flight {
				f := &m.flight[k]
				if !yield(protocol.Channel{From: protocol.ID(f.from), To: protocol.ID(f.to)}, f.msg) {
					return
				}
			}
		}
		for i := range v.Lost {
			v.Lost[i] = make([]bool, m.sys.N)
		}
	}
	v.Users, v.Registers = m.users, m.values(v.Registers[:0])
	for i := range m.procs {
		v.Procs[i] = m.procs[i].process
		copy(v.Lost[i], m.procs[i].lost)
	}
}
