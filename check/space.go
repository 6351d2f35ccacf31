package check

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/history"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/scenario"
)

// A space is the graph of global states. A state is a vector of words:
//
//	the budgets left, six bits each
//	for each process the number of its local state, 0 where it is absent
//	the numbers of the messages in flight
//
// Messages are sorted by number; with FIFO channels they are sorted by channel,
// and within a channel stand in the order in which they were sent. So equal
// states are equal vectors.
type space struct {
	m       machine
	mail    *mail
	info    protocol.Info
	names   scenario.Names
	total   int // processes
	members int
	fifo    bool
	leases  bool // LeaseDetector
	user    []bool
	endless []bool // unlimited entries, by process
	down    []bool
	budget  uint32 // initial
	shifts  bool
	timers  bool // whether armed timers fire
	stay    bool // who is inside never exits
	spaced  int  // Config.Spaced
	calm    bool // whether the state being expanded allows a loss
	g       glance

	timersSet bool // whether some process ever set one

	locals   []local
	number   map[string]uint32
	moves    []move
	moveOf   map[moveKey]uint32
	shifted  map[string]uint32 // by what, and by how much each of its counters moves
	bytes    int64
	fresh    int // distinct local steps, for the commutation check
	claim    error
	problems []problem

	users history.Users // scratch
	key   []byte
	next  []uint32
	by    []uint64
}

// A local is everything about one process that a global state contains.
type local struct {
	proc    int
	state   []byte
	section protocol.Section
	entries uint32 // tries left, 0 where unlimited
	life    uint64 // incarnation
	timers  []uint32
	lost    uint64   // of a user: members that lost their memory during its epoch
	lapsed  uint64   // of a client: members at which its lease lapsed
	ended   uint64   // of these, the members that have suspected the client since
	known   []uint64 // of a client with leases: the incarnations that it knows
	lows    []low
}

// A move is the outcome of one event in one local state.
type move struct {
	to      uint32
	cut     bool     // beyond a bound
	problem uint32   // 0, or 1 + an index in problems
	sends   []uint32 // numbers of messages
	bound   int
}

// A problem is a property that a step violates, whatever the other processes do.
type problem struct {
	property string
	err      error
}

type moveKey struct {
	local uint32
	verb  verb
	arg   uint64 // the message, timer, or process and incarnation
}

// A verb is a kind of action.
type verb uint8

const (
	try verb = iota
	cancel
	exit
	timeout
	deliver
	suspect
	restore
	// The rest are faults.
	lapse
	amnesia
	crash
	drain
)

var verbs = [...]scenario.Verb{
	try: scenario.Try, cancel: scenario.Cancel, exit: scenario.Exit, timeout: scenario.Timeout,
	deliver: scenario.Deliver, suspect: scenario.Suspect, restore: scenario.Restore, lapse: scenario.Lapse,
	amnesia: scenario.Amnesia, crash: scenario.Crash, drain: scenario.Drain,
}

// must says whether a run in which an action of this kind stays possible for
// ever without being taken is not a fair one.
func (v verb) must() bool { return v > cancel && v < lapse }

// The budgets, by their bits in the first word of a state.
const (
	amnesiaBudget = budgetBits * iota
	crashBudget
	suspectBudget
	cancelBudget
	drainBudget

	budgetBits = 6
)

// left is how much of a budget is left.
func left(st []uint32, budget int) uint32 { return st[0] >> budget & maxBudget }

// An action is one way to leave a state.
type action struct {
	verb verb
	a, b int    // processes, in the order of scenario.Step.Procs
	arg  uint32 // timer or message
}

// A visit is one action with its outcome.
type visit struct {
	action
	next    []uint32 // valid during the call
	cut     bool     // next lies beyond a bound and is not to be explored
	bound   int      // the bound
	problem *problem // the step violates a property; next may be the state before it
	sends   []uint32 // messages sent
}

func newSpace(i protocol.Info, c Config, m machine) *space {
	total := c.N + c.Clients
	s := &space{
		m: m, mail: m.mail(), info: i, total: total, members: c.N, fifo: c.FIFO,
		names:  scenario.Names{Members: c.N, Clients: i.Users == protocol.Clients},
		leases: i.Detector == protocol.LeaseDetector,
		user:   make([]bool, total), endless: make([]bool, total), down: make([]bool, total),
		budget: uint32(c.Amnesia)<<amnesiaBudget | uint32(c.Crash)<<crashBudget |
			uint32(c.Suspect)<<suspectBudget | uint32(c.Cancel)<<cancelBudget | uint32(c.Drain)<<drainBudget,
		locals: make([]local, 1), number: map[string]uint32{},
		moveOf: map[moveKey]uint32{}, shifted: map[string]uint32{},
		users: make(history.Users, total), shifts: m.shifts() && !c.NoShift,
		stay: c.Stay, spaced: c.Spaced,
		g: glance{
			states: make([][]byte, total), users: make([]protocol.Section, total), lost: make([][]bool, total),
		},
	}
	for i := range s.g.lost {
		s.g.lost[i] = make([]bool, s.members)
	}
	for k, e := range c.Entries {
		u := total - len(c.Entries) + k
		s.user[u], s.endless[u] = true, e == Unlimited
	}
	for _, d := range c.Down {
		s.down[d] = true
	}
	return s
}

// initial returns the state after every process had its Start, and every client
// with leases heard of every member. A problem there is one of no trace.
func (s *space) initial(entries []int) ([]uint32, *problem) {
	st := make([]uint32, 1+s.total)
	st[0] = s.budget
	apply := func(m move) *problem {
		if m.problem != 0 {
			return &s.problems[m.problem-1]
		}
		l := &s.locals[m.to]
		st[1+l.proc] = m.to
		for _, msg := range m.sends {
			st = s.send(st, msg)
		}
		return nil
	}
	// A message vanishes only where its receiver is down, not where it has not started yet.
	for i := range s.total {
		if !s.down[i] {
			st[1+i] = math.MaxUint32
		}
	}
	for i := range s.total {
		if s.down[i] {
			continue
		}
		l := local{proc: i, state: s.m.first(i)}
		if s.leases {
			l.life = 1
		}
		if k := i - (s.total - len(entries)); k >= 0 && entries[k] > 0 {
			l.entries = uint32(entries[k])
		}
		if s.leases && i >= s.members {
			l.known = make([]uint64, s.members)
		}
		if p := apply(s.begin(l)); p != nil {
			return nil, p
		}
	}
	for i := s.members; s.leases && i < s.total; i++ {
		for j := range s.members {
			if !s.down[j] {
				if p := apply(s.moves[s.move(st[1+i], restore, uint64(j)|1<<8)]); p != nil {
					return nil, p
				}
			}
		}
	}
	return s.normal(st), nil
}

// begin gives l its Start.
func (s *space) begin(l local) move {
	arg := uint64(0)
	if s.leases {
		arg = l.life
	}
	return s.take(l, protocol.Input{Kind: protocol.Start, Arg: arg}, 0)
}

// intern returns the number of l. It copies what it keeps.
func (s *space) intern(l local) uint32 {
	k := binary.AppendUvarint(s.key[:0], uint64(l.proc))
	k = binary.AppendUvarint(k, uint64(l.section))
	k = binary.AppendUvarint(k, uint64(l.entries))
	k = binary.AppendUvarint(k, l.life)
	k = binary.AppendUvarint(k, l.lost)
	k = binary.AppendUvarint(k, l.lapsed)
	k = binary.AppendUvarint(k, l.ended)
	for _, v := range l.known {
		k = binary.AppendUvarint(k, v)
	}
	k = binary.AppendUvarint(k, uint64(len(l.timers)))
	for _, t := range l.timers {
		k = binary.AppendUvarint(k, uint64(t))
	}
	k = append(k, l.state...)
	s.key = k
	if n, ok := s.number[string(k)]; ok {
		return n
	}
	n := uint32(len(s.locals))
	s.number[string(k)] = n
	l.state, l.timers, l.known = slices.Clone(l.state), slices.Clone(l.timers), slices.Clone(l.known)
	if l.state == nil {
		l.state = []byte{} // nil means absent
	}
	l.lows = nil
	if s.shifts {
		l.lows = s.m.lows(l.proc, l.state)
	}
	s.locals = append(s.locals, l)
	s.bytes += int64(len(k) + len(l.state) + 4*len(l.timers) + 8*len(l.known) + 16*len(l.lows) + 270)
	return n
}

// move returns the index of the move that an event makes from a local state.
func (s *space) move(from uint32, v verb, arg uint64) uint32 {
	key := moveKey{from, v, arg}
	if n, ok := s.moveOf[key]; ok {
		return n
	}
	l := s.locals[from]
	in, msg := protocol.Input{}, uint32(0)
	switch v {
	case try:
		in.Kind = protocol.Try
		if !s.endless[l.proc] {
			l.entries--
		}
	case cancel:
		in.Kind = protocol.Cancel
	case exit:
		in.Kind = protocol.Exit
	case drain:
		in.Kind = protocol.Drain
	case timeout:
		in.Kind, in.Timer = protocol.Timeout, uint32(arg)
		l.timers = slices.DeleteFunc(slices.Clone(l.timers), func(t uint32) bool { return t == in.Timer })
	case deliver:
		msg = uint32(arg)
		in.Kind, in.From = protocol.Receive, protocol.ID(s.mail.from[msg])
	case suspect, lapse:
		in.Kind, in.From = protocol.Suspect, protocol.ID(arg)
		if v == lapse {
			l.lapsed |= 1 << arg
		}
	case restore:
		in.Kind, in.From, in.Arg = protocol.Restore, protocol.ID(arg&0xff), arg>>8
		l.lapsed &^= 1 << in.From
		l.ended &^= 1 << in.From
		l.known = slices.Clone(l.known)
		l.known[in.From] = in.Arg
	}
	n := uint32(len(s.moves))
	m := s.take(l, in, msg)
	s.moves = append(s.moves, m)
	s.moveOf[key] = n
	s.bytes += int64(4*len(m.sends) + 140)
	// Every 16th distinct step is enough to catch a false claim: a wrong MapState
	// or MapMsg shows in most steps that touch a clock.
	if s.fresh++; s.shifts && m.problem == 0 && (s.fresh < 1000 || s.fresh%16 == 0) &&
		!s.m.commutes(l.proc, s.locals[from].state, in, msg) && s.claim == nil {
		s.claim = fmt.Errorf("%w: %s: step %v of process %d does not commute with moving the values of a counter",
			ErrClaim, s.info.Name, in, l.proc)
	}
	return n
}

// take steps the process of l.
func (s *space) take(l local, in protocol.Input, msg uint32) move {
	problemOf := func(property string, err error) uint32 {
		s.problems = append(s.problems, problem{property, err})
		return uint32(len(s.problems))
	}
	s.users[l.proc] = l.section
	if err := s.users.Input(protocol.ID(l.proc), in); err != nil {
		return move{problem: problemOf(Model, err)}
	}
	state, effects, beyond, err := s.m.step(l.proc, l.state, in, msg)
	if err != nil {
		return move{problem: problemOf(Model, err)}
	}
	m := move{cut: beyond >= 0, bound: beyond}
	l.state = state
	for _, e := range effects {
		switch e.Do {
		default:
			return move{problem: problemOf(Model, fmt.Errorf("model: effect %d is none", e.Do))}
		case protocol.Send:
			m.sends = append(m.sends, e.msg)
		case protocol.Crit, protocol.Rem, protocol.Ejected:
			if err := s.users.Act(protocol.ID(l.proc), e.Act); err != nil && m.problem == 0 {
				text := strings.ReplaceAll(err.Error(), fmt.Sprintf("user %d ", l.proc), s.names.Of(protocol.ID(l.proc))+" ")
				m.problem = problemOf(WellFormed, errors.New(text))
			}
		case protocol.Owner:
		case protocol.SetTimer, protocol.StopTimer:
			s.timersSet = true
			i, set := slices.BinarySearch(l.timers, e.Timer)
			l.timers = slices.Clone(l.timers)
			if e.Do == protocol.SetTimer && !set {
				l.timers = slices.Insert(l.timers, i, e.Timer)
			} else if e.Do == protocol.StopTimer && set {
				l.timers = slices.Delete(l.timers, i, i+1)
			}
		}
	}
	if l.section = s.users[l.proc]; l.section == protocol.InRem {
		l.lost = 0
	}
	m.to = s.intern(l)
	return m
}

// send puts a message in flight, unless its receiver is absent or the lease
// between the two has lapsed.
func (s *space) send(st []uint32, msg uint32) []uint32 {
	from, to := s.mail.from[msg], s.mail.to[msg]
	if st[1+to] == 0 || s.apart(st, from, to) || s.apart(st, to, from) {
		return st
	}
	i := len(st)
	st = append(st, msg)
	for ; i > 1+s.total && s.after(st[i-1], msg); i-- {
		st[i] = st[i-1]
	}
	st[i] = msg
	if s.mail.idempotent[msg] && s.holds(st[1+s.total:i], msg) {
		st = slices.Delete(st, i, i+1)
	}
	return st
}

// apart reports whether u is a client whose lease at j has lapsed.
func (s *space) apart(st []uint32, u, j int) bool {
	return s.leases && u >= s.members && st[1+u] != 0 && st[1+u] != math.MaxUint32 &&
		s.locals[st[1+u]].lapsed&(1<<j) != 0
}

// holds reports whether msg is the last of flight; with FIFO channels, whether it
// is the last of its channel, since elsewhere its place in the order matters.
func (s *space) holds(flight []uint32, msg uint32) bool {
	return len(flight) > 0 && flight[len(flight)-1] == msg
}

// after reports whether message a stands behind one that is sent now.
func (s *space) after(a, now uint32) bool {
	if !s.fifo {
		return a > now
	}
	return s.channel(a) > s.channel(now)
}

func (s *space) channel(msg uint32) int { return s.mail.from[msg]*s.total + s.mail.to[msg] }

// look returns st as invariants see it. It is valid until the next call.
func (s *space) look(st []uint32) *glance {
	s.g.locals, s.g.flight = st[1:1+s.total], st[1+s.total:]
	for i, n := range s.g.locals {
		l := &s.locals[n]
		s.g.states[i], s.g.users[i] = l.state, l.section
		for j := range s.g.lost[i] {
			s.g.lost[i][j] = l.lost&(1<<j) != 0
		}
	}
	return &s.g
}

// expand calls f for each action of st, in an order that depends on st only.
func (s *space) expand(st []uint32, f func(visit)) {
	s.calm = s.spaced == 0 || s.m.unsettled(s.look(st)) < s.spaced
	flight := st[1+s.total:]
	for i := range s.total {
		n := st[1+i]
		if n == 0 {
			continue
		}
		if s.user[i] {
			l := &s.locals[n]
			switch {
			case l.section == protocol.InRem && (l.entries > 0 || s.endless[i]):
				s.local(st, action{verb: try, a: i}, 0, -1, f)
			case l.section == protocol.InCrit && !s.stay || l.section == protocol.InLost:
				s.local(st, action{verb: exit, a: i}, 0, -1, f)
			case l.section == protocol.InTry && left(st, cancelBudget) > 0:
				s.local(st, action{verb: cancel, a: i}, 0, cancelBudget, f)
			}
		}
		for _, t := range s.locals[n].timers {
			if !s.timers {
				break
			}
			s.local(st, action{verb: timeout, a: i, arg: t}, uint64(t), -1, f)
		}
	}
	for k, msg := range flight {
		if k > 0 && (msg == flight[k-1] || s.fifo && s.channel(msg) == s.channel(flight[k-1])) {
			continue
		}
		s.deliver(st, 1+s.total+k, f)
	}
	s.detect(st, f)
	s.faults(st, f)
}

// local takes a step of process a.a that consumes nothing but a budget.
func (s *space) local(st []uint32, a action, arg uint64, budget int, f func(visit)) {
	s.next = append(s.next[:0], st...)
	if budget >= 0 {
		s.next[0] -= 1 << budget
	}
	s.finish(a, s.move(st[1+a.a], a.verb, arg), a.a, f)
}

// finish completes s.next by a move of process i and reports it.
func (s *space) finish(a action, n uint32, i int, f func(visit)) {
	m := &s.moves[n]
	v := visit{action: a, cut: m.cut, bound: m.bound, sends: m.sends}
	if m.problem != 0 {
		v.problem = &s.problems[m.problem-1]
	}
	if m.to != 0 {
		s.next[1+i] = m.to
		for _, msg := range m.sends {
			s.next = s.send(s.next, msg)
		}
	}
	s.next = s.normal(s.next)
	v.next = s.next
	f(v)
}

// deliver delivers the message at st[at]. An idempotent one may arrive again.
func (s *space) deliver(st []uint32, at int, f func(visit)) {
	msg := st[at]
	a := action{verb: deliver, a: s.mail.from[msg], b: s.mail.to[msg], arg: msg}
	n := s.move(st[1+a.b], deliver, uint64(msg))
	s.next = append(append(s.next[:0], st[:at]...), st[at+1:]...)
	s.finish(a, n, a.b, f)
	if s.mail.idempotent[msg] {
		s.next = append(s.next[:0], st...)
		s.finish(a, n, a.b, f)
	}
}

// line returns the scenario line of a.
func (s *space) line(a action) string { return s.names.Format(s.step(a)) }

func (s *space) step(a action) scenario.Step {
	st := scenario.Step{Verb: verbs[a.verb], Procs: []protocol.ID{protocol.ID(a.a)}}
	switch a.verb {
	case timeout:
		st.Timer = a.arg
	case deliver:
		st.Text = s.m.text(a.arg)
	}
	if n := a.verb; n == deliver || n == suspect || n == restore || n == lapse {
		st.Procs = append(st.Procs, protocol.ID(a.b))
	}
	return st
}
