package sim

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/workload"
	"github.com/poundlock/poundlock/verify/world"
)

// ErrConfig is wrapped by every error that says that a Config makes no sense for
// the algorithm.
var ErrConfig = errors.New("sim: bad configuration")

// Defaults of a Config. With the default delay, milliseconds are hops. Users
// think a thousand times longer than they hold, which is nearly no contention.
var (
	DefaultDelay = Constant(time.Millisecond)
	DefaultThink = Exponential(time.Second)
	DefaultHold  = Constant(time.Millisecond)
)

// The other defaults.
const (
	DefaultClients  = 10
	DefaultEntries  = 100
	DefaultLease    = 10 * time.Second
	DefaultPatience = 50_000_000
)

// Config is a run. The zero Config with N set runs, without faults.
type Config struct {
	protocol.Config
	Clients int    // of a client-server algorithm, default 10; the users of a peer algorithm are its members
	Entries []int  // critical sections: one number for each user, 0 if it never tries, or one for all. Default 100
	Seed    uint64 // of every random number

	// Warmup and Cooldown are how many entries, the first and the last ones of all users together,
	// measures leave out: they are of what happens between two of the entries. What is judged, and
	// what happens, does not depend on them. Default 0.
	Warmup, Cooldown int

	Delay Dist // of a message, or of an access to a register. Default constant:1ms
	Think Dist // between leaving and the next try; 0 is a mean delay for who gave up. Default exponential:1s
	Hold  Dist // of the critical section. Default constant:1ms
	// Operations is how many a user issues in each section, where there is a replicated object: one number
	// for each user, or one for all, a million at most. Hold begins behind the last one. Default 1 there.
	Operations []int
	// Bandwidth is how many kbit of a message leave or arrive in a ms: one of k integers, of 32
	// bit each, takes 32k/(1000 Bandwidth) ms longer than Delay. 0: no time.
	Bandwidth float64
	Loss      float64            // probability that a message is lost
	Dup       float64            // probability that a message that is not lost arrives twice
	Registers protocol.Semantics // of a shared memory. Default protocol.Atomic
	FIFO      bool               // messages of one channel arrive in order; always so where the algorithm needs it

	// Of algorithms whose users want groups, which are called 1, 2, ..: each request is for
	// PerRequest of Groups, different ones. Default 1 of 2, all alike.
	Groups     int
	Popularity Popularity
	PerRequest int
	// Wants, if not nil, is what users want in place of those, all the time: one set for each
	// user, or one for all.
	Wants []protocol.Groups
	// Downgrade is the probability that a user who is inside alone, in a group such as !r, comes down to r
	// when half of its Hold is over, where the algorithm lets it: see protocol.Downgrade.
	Downgrade float64

	Down           []protocol.ID   // members that are never up
	AmnesiaEvery   time.Duration   // a random member loses its memory, this often; 0: never
	CrashEvery     time.Duration   // a random client crashes, or a member where there are none, this often; 0: never
	RecoverEvery   time.Duration   // a random member that crashed comes back, this often; 0: never
	PauseEvery     time.Duration   // a random process pauses, this often, for a uniform part of this time
	PartitionEvery time.Duration   // a random half is cut off, this often, for a uniform part of this time
	FaultsUntil    time.Duration   // no random fault begins after it; 0: they never end
	Faults         []scenario.Step // at given times: amnesia, drain, crash, recover, suspect, restore, lapse, pause, partition, cut

	// Detect is how long it takes a member to suspect another one, where members do that:
	// one that crashed, or with protocol.UnreliableDetector one on the other side of a
	// partition, or that pauses. Silent: never. Default 10ms.
	Detect time.Duration
	// Until ends an election; 0: it ends when nothing is left to happen.
	Until time.Duration

	// Spaced, if not 0, puts a memory loss of AmnesiaEvery off until users have
	// fewer than that many losses to make up for: see protocol.Algorithm.Unsettled.
	Spaced int

	Lease       time.Duration // of a client at a member, with protocol.LeaseDetector. Default 10s
	ClockOffset time.Duration // each life's clock is off by a uniform part of this, either way

	// Patience is the number of events without any entry, and without the outcome of any
	// operation, after which a run ends as stuck. Default 50 million.
	Patience int64

	Trace    io.Writer       // one line an event; nil: none
	History  *history.Writer // what users see, of the clock history.Virtual; nil: nobody writes it
	Digest   bool            // hash those lines
	Progress func(Progress)  // called now and then, also where nobody enters; nil: never
}

// Progress is how far a run has come.
type Progress struct {
	Entries, Total int // made so far, and to be made
	Events         int64
	Now            time.Duration // in virtual time
}

// clockBase is what a process's own clock shows at the start of a run, so that
// no clock within its offset is negative.
const clockBase = int64(time.Hour)

const maxBandwidth = 1e6 // kbit/ms

// limits are what a run can be asked for. Each member may know each other one. With more operations in a
// section a run says nothing more, and of state-machine, which forgets none, so many take 1 GiB with four processes.
var limits = world.Limits{
	Members: 1 << 16, Clients: 1 << 20, Entries: 1 << 40, Operations: 1_000_000,
	DefaultClients: DefaultClients, DefaultEntries: DefaultEntries,
}

// ByNodes is c as nodes would run it: their channels are FIFO, and they measure how long a message takes.
func (c Config) ByNodes(i protocol.Info) Config {
	c.FIFO = true
	c.Config = i.Measured(c.Config, int64(c.Delay.Mean()))
	return c
}

// System is what c has in common with other drivers.
func (c *Config) System() world.System {
	s := world.System{
		Config: c.Config, Clients: c.Clients, Entries: c.Entries, Operations: c.Operations,
		Down: c.Down, FIFO: c.FIFO, Registers: c.Registers,
	}
	for _, set := range c.Wants {
		s.Wants = append(s.Wants, []protocol.Groups{set})
	}
	return s
}

// Workload is what the users of c do, once it is complete.
func (c *Config) Workload() workload.Config {
	return workload.Config{
		Seed: c.Seed, Entries: c.Entries, Think: c.Think, Hold: c.Hold, Groups: c.Groups, Popularity: c.Popularity,
		PerRequest: c.PerRequest, Wants: c.Wants, Downgrade: c.Downgrade,
	}
}

// Use takes over what c has in common with other drivers. Each user always wants the same.
func (c *Config) Use(s world.System) error {
	c.Config, c.Clients, c.Entries, c.Operations = s.Config, s.Clients, s.Entries, s.Operations
	c.Down, c.FIFO, c.Registers = s.Down, s.FIFO, s.Registers
	c.Wants = nil
	for _, list := range s.Wants {
		if len(list) > 1 {
			return fmt.Errorf("wants %v: want one set of groups, which a user wants all the time", list)
		}
		c.Wants = append(c.Wants, list[0])
	}
	return nil
}

// checkDiscarded refuses a warm-up and a cool-down that leave nothing to be measured.
func (c *Config) checkDiscarded(r *world.Rules) error {
	if c.Warmup == 0 && c.Cooldown == 0 {
		return nil
	}
	if r.Elects() {
		return fmt.Errorf("warm-up %d, cool-down %d: they are entries, and nobody enters", c.Warmup, c.Cooldown)
	}
	all := 0
	for _, k := range c.Entries {
		all += k
	}
	if c.Warmup < 0 || c.Cooldown < 0 || c.Warmup >= all || c.Cooldown >= all-c.Warmup {
		return fmt.Errorf("warm-up %d, cool-down %d: want at least 0, and less than all %d entries together", c.Warmup, c.Cooldown, all)
	}
	return nil
}

// Complete checks c against the algorithm's model and fills in the defaults.
func (c *Config) Complete(i protocol.Info) (*world.Rules, error) {
	s := c.System()
	err := s.Complete(i, limits)
	if err == nil {
		err = c.Use(s)
	}
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(c.Entries, func(k int) bool { return k > 0 }) && i.Users != protocol.Nobody {
		return nil, fmt.Errorf("nobody enters: want 1 to %d entries of some user", limits.Entries)
	}
	r := world.New(i, c.Config, c.Clients, c.Registers)
	for _, check := range []func(*world.Rules) error{c.checkDetector, c.checkDiscarded, c.checkGroups} {
		if err := check(r); err != nil {
			return nil, err
		}
	}
	for _, d := range []struct {
		name string
		dist *Dist
		or   Dist
	}{{"delay", &c.Delay, DefaultDelay}, {"think", &c.Think, DefaultThink}, {"hold", &c.Hold, DefaultHold}} {
		*d.dist = cmp.Or(*d.dist, d.or)
		if err := d.dist.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	if err := i.CheckOptions(c.Config); err != nil {
		return nil, err
	}
	c.Lease, c.Patience = cmp.Or(c.Lease, DefaultLease), cmp.Or(c.Patience, DefaultPatience)
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"amnesia-every", c.AmnesiaEvery},
		{"crash-every", c.CrashEvery},
		{"recover-every", c.RecoverEvery},
		{"until", c.Until},
		{"pause-every", c.PauseEvery},
		{"partition-every", c.PartitionEvery},
		{"faults-until", c.FaultsUntil},
		{"lease", c.Lease},
		{"clock-offset", c.ClockOffset},
	} {
		if d.d < 0 || d.d > workload.Longest {
			return nil, fmt.Errorf("%s %v: want 0 to %v", d.name, d.d, workload.Longest)
		}
	}
	if c.ClockOffset > time.Duration(clockBase) {
		return nil, fmt.Errorf("clock-offset %v: want at most %v", c.ClockOffset, time.Duration(clockBase))
	}
	switch {
	case c.Spaced < 0:
		return nil, fmt.Errorf("spaced=%d: want at least 0", c.Spaced)
	case c.Spaced > 0 && c.AmnesiaEvery == 0:
		return nil, fmt.Errorf("spaced=%d: there are no memory losses to be spaced", c.Spaced)
	case c.Patience < 0:
		return nil, fmt.Errorf("patience of %d events: want at least 1", c.Patience)
	}
	return r, c.checkFaults(r)
}

// checkDetector completes c for the failure detector, and refuses what it does not do.
func (c *Config) checkDetector(r *world.Rules) error {
	every := c.CrashEvery > 0 || c.RecoverEvery > 0 || c.PauseEvery > 0 || c.PartitionEvery > 0
	switch {
	case r.Elects() && every && c.FaultsUntil == 0 && c.Until == 0:
		return errors.New("random faults without end: want faults-until or until, for an election has no other end")
	case c.Detect != 0 && (!r.Peers || r.Detector == protocol.NoDetector):
		return errors.New("detect: its members suspect no members")
	case c.Detect == Silent && r.Mutual:
		return errors.New("detect: its members have leases, and notice each crash; want more than 0")
	case c.Detect < 0 && c.Detect != Silent || c.Detect > workload.Longest:
		return fmt.Errorf("detect %v: want 0 to %v", c.Detect, workload.Longest)
	case c.Detect == 0:
		c.Detect = DefaultDetect
	}
	return nil
}

// checkFaults refuses what the algorithm's model excludes: what it then does
// says nothing about it.
func (c *Config) checkFaults(r *world.Rules) error {
	for _, p := range []struct {
		what  string
		value float64
	}{{"loss", c.Loss}, {"dup", c.Dup}} {
		if !(p.value >= 0 && p.value < 1) {
			return fmt.Errorf("%s %v: want a probability of at least 0 and below 1", p.what, p.value)
		}
	}
	if !(c.Bandwidth >= 0 && c.Bandwidth <= maxBandwidth) || c.Bandwidth > 0 && c.Bandwidth < 1/maxBandwidth {
		return fmt.Errorf("bandwidth %v kbit/ms: want %v to %v, or 0 for messages that take no time by their size",
			c.Bandwidth, 1/maxBandwidth, maxBandwidth)
	}
	is := func(v scenario.Verb) func(scenario.Step) bool {
		return func(s scenario.Step) bool { return s.Verb == v }
	}
	for _, f := range []struct {
		what  string
		verb  scenario.Verb
		asked bool
	}{
		{fmt.Sprint("loss ", c.Loss), scenario.Lose, c.Loss > 0},
		{fmt.Sprint("dup ", c.Dup), scenario.Duplicate, c.Dup > 0},
		{"bandwidth", scenario.Deliver, c.Bandwidth > 0},
		{"a partition", scenario.Partition, c.PartitionEvery > 0 || slices.ContainsFunc(c.Faults, is(scenario.Partition))},
		{"a member that is down", scenario.Amnesia, len(c.Down) > 0},
		{"memory loss", scenario.Amnesia, c.AmnesiaEvery > 0},
		{"a crash", scenario.Crash, c.CrashEvery > 0},
		{"recover-every", scenario.Recover, c.RecoverEvery > 0},
	} {
		if err := lacks(r, f.verb); f.asked && err != nil {
			return fmt.Errorf("%s: %w", f.what, err)
		}
	}
	if c.RecoverEvery > 0 && c.CrashEvery == 0 && !slices.ContainsFunc(c.Faults, is(scenario.Crash)) {
		return errors.New("recover-every: nobody crashes who could come back")
	}
	for _, id := range c.Down {
		if id >= protocol.ID(c.N) {
			return fmt.Errorf("down: there is no member %d", id+1)
		}
	}
	if down := slices.Compact(slices.Sorted(slices.Values(c.Down))); len(down) == c.N {
		return errors.New("down: no member is left")
	}
	for _, f := range c.Faults {
		if err := c.checkFault(r, f); err != nil {
			return fmt.Errorf("%q: %w", r.Names.Format(f), err)
		}
	}
	return nil
}

// checkFault refuses a fault at a time that the model of the algorithm excludes, or that makes no sense.
func (c *Config) checkFault(r *world.Rules, f scenario.Step) error {
	for _, id := range f.Procs {
		if id >= protocol.ID(c.N+c.Clients) {
			return fmt.Errorf("there is no process %s at the start", r.Names.Of(id))
		}
		if slices.Contains(c.Down, id) {
			return fmt.Errorf("%s is down", r.Names.Of(id))
		}
	}
	if n := f.Verb.Processes(); len(f.Procs) != n && (f.Verb != scenario.Partition || len(f.Procs) < n) || n == 2 && f.Procs[0] == f.Procs[1] {
		return fmt.Errorf("want %d processes, all different", n)
	}
	if faults := faultsOf(r); !slices.Contains(faults, string(f.Verb)) {
		return fmt.Errorf("faults are %s", strings.Join(faults, ", "))
	}
	timed := f.Verb == scenario.Cut || f.Verb == scenario.Pause || f.Verb == scenario.Partition
	crashed := func(s scenario.Step) bool {
		return s.Verb == scenario.Crash && s.At <= f.At && s.Procs[0] == f.Procs[1]
	}
	member := f.Procs[0] < protocol.ID(c.N)
	switch {
	case timed && f.For <= 0, max(f.At, f.For) > workload.Longest, f.At < 0:
		return fmt.Errorf("want a time up to %v", workload.Longest)
	case f.Verb == scenario.Amnesia && !member:
		return errors.New("only a member can lose its memory and stay")
	case f.Verb == scenario.Drain && !member:
		return reasons[scenario.Drain]
	case f.Verb == scenario.Crash && member && !r.Peers:
		return errors.New("only a user's process can crash for ever; a member loses its memory (amnesia)")
	case f.Verb == scenario.Suspect && r.Detector == protocol.PerfectDetector && !slices.ContainsFunc(c.Faults, crashed):
		return errors.New("its detector suspects nobody that has not crashed")
	}
	return lacks(r, f.Verb)
}

// faultsOf are the kinds of faults at a time that there are with users and a detector of some kind.
func faultsOf(r *world.Rules) []string {
	all := []string{"amnesia", "drain", "crash", "pause", "partition", "cut"}
	switch {
	case r.Mutual: // whose members are told of their leases
		all = append(all, "recover", "lapse")
	case r.Peers:
		all = append(all, "recover", "suspect", "restore")
	}
	return all
}

// reasons say why the model of an algorithm has no steps of some kind.
var reasons = map[scenario.Verb]error{
	scenario.Amnesia:   errors.New("its model has no memory loss"),
	scenario.Crash:     errors.New("its model has no crashes"),
	scenario.Recover:   errors.New("its model has no member that comes back"),
	scenario.Drain:     errors.New("want one member, of an algorithm whose members drain"),
	scenario.Lose:      protocol.ErrReliable,
	scenario.Duplicate: protocol.ErrReliable,
}

// lacks says why the model of an algorithm has no steps of some kind; nil: it has them.
func lacks(r *world.Rules, v scenario.Verb) error {
	of := func(list ...scenario.Verb) bool { return slices.Contains(list, v) }
	switch {
	case r.Registers != nil && of(scenario.Deliver, scenario.Lose, scenario.Duplicate, scenario.Partition):
		return protocol.ErrRegisters
	case !world.Has(r.Info, v) && reasons[v] != nil:
		return reasons[v]
	case r.Peers && v == scenario.Amnesia:
		return errors.New("not simulated where the members are the users")
	case r.Detector == protocol.NoDetector && of(scenario.Suspect, scenario.Restore):
		return errors.New("its members suspect no members")
	}
	return nil
}
