// Package check is an explicit-state model checker: it visits every state that
// an algorithm can reach within stated bounds, breadth first, and reports the
// shortest run that violates a property.
//
// The process that it steps is the one that the simulator measures and the
// network runs. Users, channels, timers, failure detectors and faults are
// choices of the checker: whatever may happen next is one action, and one line
// of a scenario.
//
// # Storage
//
// A global state is a short vector of numbers. The state of one process (with
// its user, timers and leases) and each message are interned on first sight, so
// that a step of one process in one local state under one event is computed once
// however many global states contain it. Visited states are kept as 64-bit
// fingerprints with the number of their parent and of the action that led to
// them; only those that wait to be expanded are whole vectors. A trace is rebuilt
// by taking those actions again. Two states may share a fingerprint: the chance
// that a state was missed for that reason is part of the bounds, and Config.Exact
// excludes it.
//
// # Workers
//
// The states of one depth are expanded by several workers, which only look up what
// they share. One of them goes over the results in the order of the states, and
// adds what is new. So the numbers of states, their parents and the trace of a
// violation are the same for any number of workers.
//
// # Infinite runs
//
// Starvation and the like are properties of infinite runs. For them the states and all
// steps are kept, and package lasso looks for a fair run that violates them: a way to a
// loop, and the loop.
//
// # Verdicts
//
// A property holds within the bounds, is violated by a trace, or is undecided.
// The search ends at the first violation of any property that was asked for; the
// others are then undecided, although nothing was found against them so far.
package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/world"
)

// Unlimited is a number of entries without end.
const Unlimited = world.Unlimited

// DefaultMaxMemory is the memory cap of a zero Config.
const DefaultMaxMemory = 4 << 30

// The properties of every algorithm, by name. An algorithm's invariants have
// names of their own.
const (
	// Exclusion: users that are in the critical section at a time share the groups that
	// were granted to them; without groups there is at most one.
	Exclusion = "exclusion"
	// WellFormed: every user sees try, crit, exit, rem in cyclic order, and with crit one
	// of the groups that it wants.
	WellFormed = "well-formed"
	// Deadlock: never does a user try while nothing that must happen can change
	// the state. Messages, timers, exits and the failure detector must happen; a
	// new try and a fault need not, so they are no way out. Like what is about infinite
	// runs, it is not violated where too few members are up: see protocol.Info.Enough.
	Deadlock = "deadlock"
	// Starvation: no user stays in its trying section for ever, nor in its exit section.
	// Like MakesProgress and Bypass it is about infinite runs: fair ones, in which what
	// must happen and stays possible does happen. To decide that takes all states and
	// steps in memory, and no step may be cut by a bound.
	Starvation = "starvation"
	// MakesProgress: it never happens that from some point on somebody is trying or
	// exiting all the time, and nobody is ever inside. A deadlock violates it, and so
	// does a livelock.
	MakesProgress = "progress"
	// Bypass: while one user tries, others enter a bounded number of times; the bound is
	// measured. No algorithm need promise it: "all" does not contain it.
	Bypass = "bypass"
	// Model: the algorithm never meets what its model makes impossible, that is,
	// no step panics. It is always checked.
	Model = "model"
	// Kept: nobody who is inside loses its critical section, and when nothing that
	// must happen is left to happen, no loss is unsettled: see Algorithm.Unsettled.
	// Where timers never fire it waits for none. An algorithm need not promise that
	// in every model: "all" does not contain it.
	Kept = "kept"
)

// ErrClaim says that an algorithm made a false claim about itself, so that a
// verdict that relies on it would mean nothing.
var ErrClaim = errors.New("check: the algorithm's claim is false")

// A PropertyError says that an algorithm has no property of a name that was asked for.
type PropertyError struct {
	Name  string
	Known []string // those that it has
}

func (e *PropertyError) Error() string {
	return fmt.Sprintf("check: unknown property %q: want all or some of %s", e.Name, strings.Join(e.Known, ", "))
}

// DefaultClients is how many clients there are where a Config does not say.
const DefaultClients = 2

// A Config says what to explore. A Config with N explores one entry each.
type Config struct {
	protocol.Config
	Clients int   // users of a client-server algorithm. Default 2
	Entries []int // tries, one number for all users or one for each; Unlimited. Default 1
	// Operations is how many a user issues in each of its sections, on a replicated object: one number for
	// all users or one for each. Default 1 where there is one.
	Operations []int
	// Decisions is how many decisions of consensus may be made while the failure detector is not accurate,
	// the first ones. Default Suspect + Crash + Pause.
	Decisions int
	// Wants are the alternatives of users of a group algorithm, among which each try chooses
	// one: a list for all users or one for each. Default DefaultWants.
	Wants [][]protocol.Groups

	// Budgets: how often each fault may happen in one run.
	Amnesia int // a member restarts empty
	Crash   int // a user's process stops for ever, or that of a member of an election
	Recover int // a member that crashed comes back empty
	Suspect int // a lease at a live server lapses, a session of two members breaks, or the detector of a member suspects one that is up
	Cancel  int // a user gives up a try
	Drain   int // a member grants nothing new until it restarts
	Loss    int // a message is lost
	Dup     int // there is one more copy of a message
	Pause   int // a process stands still for a while: see world.Rules.Pauses

	// Downgrade: who is inside alone, in a group such as !r, may come down to r at any moment: see protocol.Downgrade.
	Downgrade bool

	// Spaced, if not 0, lets a member restart, or a lease lapse, only while users
	// have fewer than that many losses to make up for: see Algorithm.Unsettled.
	Spaced int
	// Stay: who is inside never exits, unless it was ejected. To wait for it is no
	// deadlock.
	Stay bool
	// UntilTold: who is inside in a group that others may share, or in one that it keeps, exits only when it has heard that
	// somebody waits: see protocol.Wanted. To wait for somebody who has not is a deadlock.
	UntilTold bool

	Timers     Timers
	Down       []protocol.ID      // members that are never up
	Registers  protocol.Semantics // of a shared memory. Default protocol.Atomic
	FIFO       bool               // channels keep their order; always so where Info.FIFO
	NoShift    bool               // take counters as they are, though MapState would let them be moved
	Properties []string           // names; empty: those of finite runs; "all": also of infinite ones
	Prefix     []scenario.Step    // the run to start from
	Reduce     []string           // reductions; not used where they do not keep what is asked for
	MaxMemory  int64              // bytes. Default DefaultMaxMemory

	// Workers is how many goroutines explore. The verdict, its numbers and its trace
	// are the same for any number. Default: as many as processors.
	Workers int
	// Exact compares whole states and keeps them all, so that no fingerprint hides one.
	Exact bool

	// Swarm, if not nil, looks for violations where a search of all states is out of
	// reach. It never decides that a property holds.
	Swarm *Swarm

	// Verify looks for false claims of confluence in all states of a search that leaves
	// no order out. One that does can verify them only in the states that are left.
	Verify bool

	sabotage sabotage
	apart    bool // decisions are made at any time: see object.go
	lasts    bool // Model.Lasts counts: see prepare

	// Progress is called about four times a second.
	Progress func(Progress)
	// Done ends the search when it is closed, as the memory cap does.
	Done <-chan struct{}
}

// Timers says when an armed timer may fire.
type Timers string

// The modes of timers.
const (
	// AnyMoment contains every timing, so that what holds holds for all of them.
	// Because it multiplies the states, the search explores first what can happen
	// when no timer fires: a violation found there is reported, though one that
	// needs timeouts may be shorter. This is the default.
	AnyMoment Timers = "any"
	// NeverFire is for hunting: what holds then need not hold with timeouts.
	NeverFire Timers = "never"
	// Synchronous is the model of a time-out that exceeds a round trip: an armed timer fires
	// only while no message from its process or to it is on its way, nor news of a detector.
	// What waits for a time-out that is possible again and again gets it.
	Synchronous Timers = "synchronous"
)

// Progress is how far a search has come.
type Progress struct {
	States, Transitions int64
	Depth               int   // of the states being expanded
	Frontier            int64 // states still to be expanded
	Memory              int64 // bytes
	Elapsed             time.Duration
}

// A Result is one of three values.
type Result string

// The results, from best to worst.
const (
	Holds     Result = "holds"
	Undecided Result = "undecided"
	Violated  Result = "violated"
)

// A Verdict is what a search found out, with its bounds.
type Verdict struct {
	Verdict     Result     `json:"verdict"`    // the worst of all
	Property    string     `json:"property"`   // the first with that result
	Trace       []string   `json:"trace"`      // of a violation: scenario lines
	Properties  []Property `json:"properties"` // each one that was asked for
	Bounds      string     `json:"bounds"`
	States      int64      `json:"states"`
	Transitions int64      `json:"transitions"`
	Depth       int        `json:"depth"` // the longest shortest path that was completely explored
	Seconds     float64    `json:"seconds"`
	StatesPerS  float64    `json:"states_per_s"`

	Loop Mark `json:"loop,omitzero"` // see Property

	// Searches is how many a swarm made: then States is the sum of what each of them
	// visited, and how much of the whole that is nobody knows. Else 0.
	Searches int `json:"searches,omitempty"`

	// Reason says what is wrong at the end of the trace.
	Reason string `json:"reason,omitempty"`
	// Run is the trace with what each step did, and the state at its end; nil
	// without a violation.
	Run *scenario.Run `json:"run,omitempty"`

	timers bool // whether some process set a timer
	clean  bool // everything was explored, and no violation was found
}

// A Property is the result for one property.
type Property struct {
	Property string   `json:"property"`
	Verdict  Result   `json:"verdict"`
	Depth    int      `json:"depth"` // of a violation: its steps; else as Verdict.Depth
	Trace    []string `json:"trace"`
	// Loop is where in the trace of an infinite run its loop begins: what follows may be
	// taken again and again. If that is its end, the run stays there for ever.
	Loop Mark `json:"loop,omitzero"`
	// Bound is what Bypass measured.
	Bound *Overtaking `json:"bound,omitempty"`
}

// Run explores a within c. An error means that c is not a possible
// configuration, or wraps ErrClaim; what is wrong with the algorithm is a verdict.
func Run[M any](a protocol.Algorithm[M], c Config) (Verdict, error) {
	return decide(protocol.Erase(a), c)
}

func decide(a protocol.Algorithm[any], c Config) (Verdict, error) {
	a.Share(len(c.Wants) > 0)
	names, err := prepare(a, &c)
	if err != nil {
		return Verdict{}, err
	}
	if c.Swarm != nil {
		return swarm(a, c, names)
	}
	quiet, err := run(a, c, names, NeverFire)
	if err != nil || c.Timers == NeverFire || !quiet.clean || !quiet.timers {
		return quiet, err
	}
	v, err := run(a, c, names, c.Timers)
	if v.Verdict == Undecided {
		v.Bounds += fmt.Sprintf("; with timers that never fire exhaustive: no violation in %s", Plural(quiet.States, "state"))
	}
	return v, err
}

// prepare completes c and returns the names of the properties to judge.
func prepare(a protocol.Algorithm[any], c *Config) ([]string, error) {
	if err := c.complete(a.Info); err != nil {
		return nil, err
	}
	names, err := choose(a, c.Properties, c.finite)
	if err != nil {
		return nil, err
	}
	if c.Timers == "" {
		if c.Timers = AnyMoment; a.Synchronous {
			c.Timers = Synchronous
		}
	}
	switch {
	case c.Spaced < 0:
		return nil, fmt.Errorf("check: %s: spaced=%d: want at least 0", a.Name, c.Spaced)
	case c.Spaced > 0 && a.Unsettled == nil:
		return nil, fmt.Errorf("check: %s: spaced=%d: want 0, since its users make up for no losses", a.Name, c.Spaced)
	case c.Downgrade && !a.Shares:
		return nil, fmt.Errorf("check: %s: downgrade: its users cannot share what they hold alone", a.Name)
	case c.UntilTold && !a.Tells:
		return nil, fmt.Errorf("check: %s: until told: it tells its users nothing", a.Name)
	case c.UntilTold && c.Stay:
		return nil, fmt.Errorf("check: %s: until told: who is inside stays there anyway", a.Name)
	case c.FIFO && a.Stale != nil:
		return nil, fmt.Errorf("check: %s: FIFO channels: its messages overtake each other", a.Name)
	case c.Timers != AnyMoment && c.Timers != NeverFire && c.Timers != Synchronous:
		return nil, fmt.Errorf("check: timers %q: want %s, %s or %s", c.Timers, AnyMoment, NeverFire, Synchronous)
	}
	// What options turn off that were not given, a claim makes up for.
	c.lasts = c.lasts && a.Lasts != nil && !c.FIFO &&
		(slices.Contains(names, MakesProgress) || slices.Contains(names, Starvation))
	return names, nil
}

func run(a protocol.Algorithm[any], c Config, names []string, t Timers) (Verdict, error) {
	reduction, err := reductions(a, c, names)
	if err != nil {
		return Verdict{}, err
	}
	x := newWorkerOf(a, c)
	x.reduce(reduction)
	all := crew{x}
	for len(all) < c.Workers {
		all = append(all, newWorker(x.space, newMachine(a, c, x.messages)))
	}
	return search(all, names, t)
}

// newWorkerOf makes a worker with a space of its own.
func newWorkerOf(a protocol.Algorithm[any], c Config) *worker {
	m := newMachine(a, c, nil)
	return newWorker(newSpace(a.Info, c, m), m)
}
