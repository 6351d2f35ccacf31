package check

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// A space is the graph of global states. A state is a vector of words:
//
//	the budgets left, four bits each
//	for each process the number of its local state, 0 where it is absent
//	the numbers of what all processes share: see object.go
//	the numbers of the messages in flight
//
// Messages are sorted by number; with FIFO channels they are sorted by channel,
// and within a channel stand in the order in which they were sent. So equal
// states are equal vectors.
//
// What was interned, and the moves that were computed, are shared by the workers
// of a search: see worker.frozen.
type space struct {
	c        Config
	rules    *world.Rules
	messages *messages
	cells    int // where registers begin in a state
	flight   int // where messages begin
	fifo     bool
	tracks   bool // whom a member suspects is part of the state
	user     []bool
	endless  []bool // unlimited entries, by process
	down     []bool
	budget   uint32 // initial
	costs    [len(verbs)]uint32
	shifts   bool
	timers   bool     // whether armed timers fire
	bounded  bool     // only where no message is on its way: see Synchronous
	tasks    []uint32 // operations that a user issues in each section, by process

	wants     [][]protocol.Groups // by process: what a try of its user chooses from; without groups ""
	shared    shared
	reduction reduction

	timersSet bool // whether some process ever set one

	locals    []local
	summaries []summary // of the locals
	number    map[string]uint32
	moves     []move
	sent      []uint32 // the messages of all moves
	set       []uint32 // the timers that they set
	begun     []uint32 // the counters that they begin: of which nothing before them has a value
	moveOf    table    // the places in moves, by local state, verb and argument
	wide      map[uint64]uint32
	shifted   shifted
	renamed   memo[uint32]     // local states and messages with members renamed: see another
	verified  table            // the claims of confluence that were verified
	forgets   bool             // Algorithm.Stale
	drops     bool             // Algorithm.Moot
	moot      memo[bool]       // by local state and message
	stale     map[pairing]bool // what it said
	bytes     int64
	fresh     int // distinct local steps, for the commutation check
	claim     error

	problems []history.Fault // properties that steps violate, whatever the other processes do
}

// A digest is what one word adds to what is known of a whole state.
type digest struct {
	hash  uint64 // a random number, see worker.print
	floor uint64 // the counters, by bit, whose smallest value here is at its least
	above uint64 // those whose smallest value here is above it
}

// A summary is what the search needs to know of a local state in every global one.
type summary struct {
	digest
	section protocol.Section
	tasks   bool // its user has an operation to issue, if it is inside
	tries   bool // its user may try, if it is in its remainder section
	timers  bool // some are set
	paused  bool
	unaware bool // a lease lapsed while it paused
	apart   bool // some lease has lapsed
	gone    bool // it crashed, and something of it is remembered; also of number 0
}

// A local is everything about one process that a global state contains.
type local struct {
	world.End
	proc    int
	state   []byte // nil: absent
	entries uint32 // tries left, 0 where unlimited
	lows    []low
}

// A move is the outcome of one event in one local state.
type move struct {
	digest         // the sum of those of to and of what is sent to processes that are ever up
	to      uint32 // 0: none
	problem uint32 // 0, or 1 + an index in problems
	sends   span   // of space.sent
	set     span   // of space.set
	begun   span   // of space.begun
	update  uint32 // 0: none
	bound   int32  // that to exceeds, or -1
	plain   bool   // whatever is sent will be in flight, if the receiver is there
}

// A span is a part of a list.
type span struct{ from, to uint32 }

// A verb is a kind of action.
type verb uint8

const (
	try verb = iota
	downgrade
	cancel
	exit
	timeout
	deliver
	suspect
	restore
	lapseBroken // a lease among members lapses, whose session is broken
	issue
	agree
	hear
	resume
	read
	begin // of a write
	write
	// The rest need not happen. They are faults, but for awaitOverlap: a read by an Await which
	// overlaps a write.
	awaitOverlap
	lapse
	lapsePaused   // a lease lapses, because one of the two that share it pauses
	suspectPaused // a member that pauses is suspected
	pause
	mistake // the detector suspects somebody that is up
	recovery
	amnesia
	crash
	drain
	lose
	duplicate
)

var verbs = [...]scenario.Verb{
	try: scenario.Try, downgrade: scenario.Downgrade, cancel: scenario.Cancel, exit: scenario.Exit, timeout: scenario.Timeout,
	read: scenario.Read, begin: scenario.Begin, write: scenario.Write, awaitOverlap: scenario.Read,
	issue: scenario.Issue, agree: scenario.Decide, hear: scenario.Hear,
	deliver: scenario.Deliver, suspect: scenario.Suspect, restore: scenario.Restore, lapse: scenario.Lapse, lapseBroken: scenario.Lapse, lapsePaused: scenario.Lapse, suspectPaused: scenario.Suspect,
	pause: scenario.Pause, resume: scenario.Resume,
	mistake: scenario.Suspect, recovery: scenario.Recover, amnesia: scenario.Amnesia, crash: scenario.Crash, drain: scenario.Drain,
	lose: scenario.Lose, duplicate: scenario.Duplicate,
}

// plain reports whether an action of this kind is a step of one process that changes nothing else except
// messages: most actions are such ones.
func (v verb) plain() bool { return v <= deliver }

// must says whether a run in which an action of this kind stays possible for
// ever without being taken is not a fair one.
func (v verb) must() bool { return v > cancel && v < awaitOverlap }

// accesses reports whether an action of this kind is one on a register.
func (v verb) accesses() bool { return v >= read && v <= write || v == awaitOverlap }

// The budgets, by their bits in the first word of a state.
const (
	amnesiaBudget = budgetBits * iota
	crashBudget
	suspectBudget
	cancelBudget
	drainBudget
	lossBudget
	dupBudget
	pauseBudget

	recoverBudget = drainBudget // members drain where there are clients, and recover where there are none
	budgetBits    = 4
)

// costs are what actions take from the budgets.
var costs = [len(verbs)]uint32{
	cancel: 1 << cancelBudget, drain: 1 << drainBudget, lapse: 1 << suspectBudget, mistake: 1 << suspectBudget,
	recovery: 1 << recoverBudget, amnesia: 1 << amnesiaBudget, crash: 1 << crashBudget, lose: 1 << lossBudget,
	duplicate: 1 << dupBudget, pause: 1 << pauseBudget,
}

// affords reports whether there is something left, in the state entered, of the budget that an action of some kind takes from.
func (x *worker) affords(v verb) bool { return x.st[0]&(costs[v]*maxBudget) != 0 }

// cost is what a takes from the budgets.
func (s *space) cost(a *action) uint32 { return s.costs[a.verb] }

// left is how much of a budget is left.
func left(st []uint32, budget int) uint32 { return st[0] >> budget & maxBudget }

// An action is one way to leave a state.
type action struct {
	verb verb
	keep bool   // of deliver: the message, which is idempotent, may arrive again
	a, b uint8  // processes, in the order of scenario.Step.Procs
	arg  uint32 // timer or message; of issue the number of the operation; of agree and hear what is decided; of try which of the sets of groups; of read the content found, of write the register, as is b
	at   uint32 // of deliver, lose and duplicate, and on registers: where the word stands in the state; of agree and hear the instance
}

// alike reports whether two actions differ at most in the numbers of messages.
func (a action) alike(b action) bool {
	return a.verb == b.verb && a.keep == b.keep && a.a == b.a && a.b == b.b && (!a.verb.argued() || a.arg == b.arg)
}

// argued reports whether actions of this kind differ by more than the number of a message.
func (v verb) argued() bool { return v == timeout || v == try || v == agree || v.accesses() }

// A visit is one action with its outcome.
type visit struct {
	action
	outcome
	next    []uint32      // valid during the call
	problem history.Fault // the step violates a property; next may be the state before it
}

func newSpace(i protocol.Info, c Config, m *machine) *space {
	rules := world.New(i, c.Config, c.Clients, c.Registers)
	rules.UntilTold = c.UntilTold
	total := rules.Total
	s := &space{
		c: c, rules: rules, messages: m.messages, fifo: c.FIFO,
		tracks: i.Users != protocol.Clients && (c.Recover > 0 || c.Suspect > 0 || c.Pause > 0 || c.Timers == Synchronous || i.Consensus && c.Crash > 0) &&
			i.Detector != protocol.LeaseDetector,
		bounded: c.Timers == Synchronous,
		user:    make([]bool, total), endless: make([]bool, total), down: make([]bool, total), tasks: make([]uint32, total),
		locals: make([]local, 1), summaries: []summary{{gone: true}}, number: map[string]uint32{}, wide: map[uint64]uint32{},
		shifted: shifted{by: map[string]uint32{}},
		shifts:  m.a.MapState != nil && m.a.MapMsg != nil && !c.NoShift && i.Registers == nil && i.Users != protocol.Nobody && !i.Weak && !i.Consensus,
		forgets: m.a.Stale != nil, drops: m.a.Moot != nil, stale: map[pairing]bool{},
	}
	s.shared, s.cells = newShared(i, total)
	s.flight = s.cells + len(rules.Memory)
	for k, e := range c.Entries {
		u := total - len(c.Entries) + k
		s.user[u], s.endless[u] = true, e == Unlimited
	}
	s.wants = slices.Repeat([][]protocol.Groups{{""}}, total)
	copy(s.wants[total-len(c.Wants):], c.Wants)
	s.costs = costs
	for _, b := range c.Budgets() {
		s.budget |= uint32(*b.Most) & maxBudget << b.at // Unlimited: all bits
		if *b.Most == Unlimited {
			v := amnesia
			if b.Verb == scenario.Cancel {
				v = cancel
			}
			s.costs[v] = 0
		}
	}
	for i, k := range c.Operations {
		s.tasks[i] = uint32(k)
	}
	for _, d := range c.Down {
		s.down[d] = true
	}
	return s
}

// sends returns the messages that a move sends.
func (s *space) sends(m *move) []uint32 { return s.sent[m.sends.from:m.sends.to] }
func (s *space) sets(m *move) []uint32  { return s.set[m.set.from:m.set.to] }
func (s *space) anew(m *move) []uint32  { return s.begun[m.begun.from:m.begun.to] }

// after reports whether message a stands behind one that is sent now.
func (s *space) after(a, now uint32) bool {
	if !s.fifo {
		return a > now
	}
	return s.channel(a) > s.channel(now)
}

func (s *space) channel(msg uint32) int {
	return s.messages.from(msg)*s.rules.Total + s.messages.to(msg)
}

// line returns the scenario line of a.
func (s *space) line(a action, m *machine) string { return s.rules.Names.Format(s.step(a, m)) }

func (s *space) step(a action, m *machine) scenario.Step {
	procs := []protocol.ID{protocol.ID(a.a), protocol.ID(a.b)}
	st := scenario.Step{Verb: verbs[a.verb], Procs: procs[:verbs[a.verb].Processes()]}
	switch a.verb {
	case try:
		st.Text = string(s.wants[a.a][a.arg])
	case timeout:
		st.Timer = a.arg
	case issue:
		st.Text = s.rules.Operation(int(a.a), a.arg)
	case agree:
		st.Text = fmt.Sprintf("%d %s", a.at, m.text(a.arg))
	case deliver, lose, duplicate:
		st.Text = m.text(a.arg)
	case read, awaitOverlap, begin, write:
		st.Text = s.rules.Memory[a.b].Name
		if c := s.shared.contents; a.verb != begin && a.verb != write && c[a.arg].Writers > 0 {
			st.Text = scenario.Found(st.Text, c[a.arg].Value)
		}
	}
	return st
}

// deny notes that the algorithm made a false claim, if it is the first one.
func (s *space) deny(format string, args ...any) {
	if s.claim == nil {
		s.claim = fmt.Errorf("%w: %s: %w", ErrClaim, s.rules.Info.Name, fmt.Errorf(format, args...))
	}
}

// memory estimates the bytes in use.
func (s *space) memory() int64 {
	return s.bytes + s.messages.bytes + s.moveOf.bytes + s.shifted.bytes() + s.renamed.size() + s.verified.bytes + s.moot.size() +
		int64(4*(cap(s.sent)+cap(s.set)+cap(s.begun))+80*cap(s.moves))
}
