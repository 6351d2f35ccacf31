package hunt

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/verify/world"
)

// kinds is a set of what may happen in a run.
type kinds uint16

const (
	losses  kinds = 1 << iota // members lose their memory
	crashes                   // users stop for ever
	lapses                    // leases lapse
	pauses                    // processes stand still for a while
	cancels                   // users give up
	drains                    // members drain
	downs                     // members are never up
	drops                     // channels lose messages
	copies                    // channels repeat messages
	aimed                     // losses hit who supports the holder, which stands still

	// Of members, where there are no clients.
	recoveries // who crashed comes back
	mistakes   // detectors suspect who is up
	storms     // they do so many at once
)

// kindOf is the kind of which a step is one.
var kindOf = map[scenario.Verb]kinds{
	scenario.Amnesia: losses, scenario.Crash: crashes, scenario.Lapse: lapses, scenario.Cancel: cancels, scenario.Drain: drains,
	scenario.Lose: drops, scenario.Duplicate: copies, scenario.Recover: recoveries, scenario.Suspect: mistakes,
}

// An order is how an untimed run chooses among the messages in flight.
type order uint8

const (
	anyMessage order = iota // each is as likely
	oldest                  // nearly as they were sent
	newest                  // the last one sent arrives first, mostly
	channels                // by priorities of channels, which change at times
	receivers               // by priorities of receivers, which change at times
	orders
)

// A plan is what was drawn for one run before it begins. What is drawn on the way
// follows from chance.
type plan struct {
	run    int64
	silent int // members that may be silent
	chance *rand.Rand
	system
	kinds
	timed bool

	// Of a timed run.
	clocks bool // clocks run; else they show 0
	config sim.Config

	// Of an untimed one.
	order   order
	tries   int    // of each user
	storm   int    // steps with faults
	faulty  int    // faults in a thousand steps
	slow    int    // steps for which a process is slow, at most
	users   int    // percent of the steps that are users'
	timers  int    // percent that are timers'
	news    int    // percent that are the detector's
	stays   int    // percent of chances to leave that a user lets pass
	shuffle int    // steps between two draws of priorities
	held    uint64 // messages of a lower priority arrive when nothing else can happen
	judges  bool

	operations int // of a replicated object: in each section, at most
	agrees     int // percent of the steps that are those of consensus
}

// draw draws a run that goes beyond the budget of the model by so many members.
// settles says whether the users make up for losses.
func (c *Config) draw(i protocol.Info, settles bool, run int64, beyond int) plan {
	p := plan{run: run, chance: c.stream(run), system: system{System: c.System()}}
	r := p.chance
	p.timed = r.IntN(3) == 0
	p.memory(i)
	p.sizes(i)
	p.wish(i)
	p.options(c, i)
	p.budget, p.silent = allowance(i, settles, p.system, beyond)
	for _, k := range []struct {
		kind    kinds
		allowed bool
	}{
		{losses, world.Has(i, scenario.Amnesia) && p.budget > 0},
		{crashes, world.Has(i, scenario.Crash)},
		{lapses, i.Detector == protocol.LeaseDetector},
		{pauses, true},
		{cancels, world.Has(i, scenario.Cancel)},
		{drains, world.Has(i, scenario.Drain) && p.silent > 0},
		{downs, i.Users == protocol.Clients && i.Tolerates&protocol.Amnesia != 0 && p.silent > 0},
		{drops, world.Has(i, scenario.Lose)},
		{copies, world.Has(i, scenario.Duplicate)},
		{aimed, true},
	} {
		if r.IntN(2) == 0 && k.allowed {
			p.kinds |= k.kind
		}
	}
	if world.Has(i, scenario.Recover) && r.IntN(2) == 0 {
		p.kinds |= recoveries
	}
	if i.Users != protocol.Clients && i.Detector == protocol.UnreliableDetector && r.IntN(2) == 0 {
		p.kinds |= mistakes
	}
	if beyond > 0 {
		// What goes beyond the budget is all that matters.
		p.kinds |= losses
		p.timed = p.timed && r.IntN(3) == 0
		if r.IntN(2) == 0 {
			p.kinds |= aimed | pauses
		}
	}
	p.kinds &^= c.without
	if p.has(downs) {
		for range 1 + r.IntN(p.silent) {
			p.Down = append(p.Down, protocol.ID(len(p.Down)))
		}
		p.budget, p.silent = allowance(i, settles, p.system, beyond)
	}
	// A lease that lapses costs as much as a memory loss, where there are any.
	// Without those it costs nothing.
	p.spaced = p.has(losses)
	if p.timed {
		p.time(c, i, settles)
	} else {
		p.untime()
		if i.Detector == protocol.LeaseDetector && i.Users != protocol.Clients {
			p.faulty, p.tries = 5*p.faulty, 3*p.tries // what is wrong takes several faults in a row
		}
	}
	p.object(c, i)
	return p
}

// stream returns the random numbers of a run.
func (c *Config) stream(run int64) *rand.Rand {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], c.Seed)
	binary.LittleEndian.PutUint64(seed[8:], uint64(run))
	return rand.New(rand.NewChaCha8(seed))
}

func (p *plan) has(k kinds) bool { return p.kinds&k != 0 }

// sizes draws how many there are, small numbers more often.
func (p *plan) sizes(i protocol.Info) {
	if p.N == 0 {
		p.N = i.Fit(2 + min(p.chance.IntN(9), p.chance.IntN(9)))
	}
	if i.Users == protocol.Clients && p.Clients == 0 {
		p.Clients = 2 + min(p.chance.IntN(14), p.chance.IntN(14))
	}
}

// options draws the options that were not given, where any value keeps the
// algorithm's promises.
func (p *plan) options(c *Config, i protocol.Info) {
	p.Options = map[string]int64{}
	for name, v := range c.Options {
		p.Options[name] = v
	}
	for _, o := range i.Options {
		if _, given := p.Options[o.Name]; !given && o.InCheck != nil {
			p.Options[o.Name] = o.Default(p.Config) // for package check has another one
		}
	}
	for _, o := range i.Options {
		if _, given := c.Options[o.Name]; given || o.Sound == nil || p.chance.IntN(2) == 0 {
			continue
		}
		least, most := o.Sound(p.Config)
		p.Options[o.Name] = logUniform(p.chance, least, most)
	}
}

// logUniform draws from least to most, each order of magnitude as often.
func logUniform(r *rand.Rand, least, most int64) int64 {
	if most-least < 16 {
		return least + r.Int64N(most-least+1)
	}
	span := math.Log(float64(most-least) + 1)
	return min(most, least+int64(math.Exp(r.Float64()*span))-1)
}

func (p *plan) duration(least, most time.Duration) time.Duration {
	return time.Duration(logUniform(p.chance, int64(least), int64(most)))
}

// between draws from least to most.
func (p *plan) between(least, most int) int { return least + p.chance.IntN(most-least+1) }

// untime draws a run without time.
func (p *plan) untime() {
	p.order = order(p.chance.IntN(int(orders)))
	p.tries = p.between(1, 6)
	p.storm = p.between(100, 4000)
	p.faulty = p.between(1, 40)
	p.slow = p.between(10, 2000)
	p.users = p.between(1, 20)
	p.timers = p.between(0, 8)
	p.news = p.between(1, 20)
	p.stays = p.between(0, 99)
	p.shuffle = p.between(10, 1000)
	p.held = p.chance.Uint64() >> 1
	p.judges = p.chance.IntN(4) == 0
}

// time draws a run with time. Memory losses and lapses exclude each other there:
// package sim spaces the first so that the budget holds, and cannot put off the
// others.
func (p *plan) time(c *Config, i protocol.Info, settles bool) {
	const hop = time.Millisecond
	p.clocks = p.chance.IntN(2) == 0
	s := &p.config
	s.Config, s.Clients, s.FIFO, s.Down = p.Config, p.Clients, p.FIFO, p.Down
	s.Registers = p.Registers
	p.timeWants(i)
	s.Seed = p.chance.Uint64()
	s.Entries = []int{p.between(1, 20)}
	s.Patience = patience
	s.Delay = p.delay(hop)
	if _, given := c.Options[i.Delay]; i.Delay != "" && !given {
		// As a driver would that measures it, and not always well.
		p.Options[i.Delay] = p.chance.Int64N(int64(3*s.Delay.Mean())) + int64(s.Delay.Mean())
	}
	s.Think = sim.Exponential(p.duration(0, 100*hop))
	s.Hold = sim.Exponential(p.duration(0, 100*hop))
	s.FaultsUntil = p.duration(10*hop, time.Second)
	s.Lease = sim.DefaultLease
	if p.has(losses) && settles && p.budget > 0 {
		s.AmnesiaEvery, s.Spaced = p.duration(hop/10, 100*hop), p.budget
		p.kinds &^= lapses
	} else {
		p.kinds &^= losses
	}
	if p.has(crashes) {
		s.CrashEvery = p.duration(10*hop, time.Second)
	}
	if p.has(lapses) || i.Detector == protocol.LeaseDetector && i.Users != protocol.Clients { // who revoke, and wait for a lease
		s.Lease = p.duration(5*hop, 100*hop)
	}
	if p.has(pauses) {
		s.PauseEvery = p.duration(hop, 300*hop)
		if s.PartitionEvery = p.duration(10*hop, 300*hop); p.Registers != "" {
			s.PartitionEvery = 0 // nothing is on its way
		}
	}
	p.timePeers(i)
	if p.has(drops) {
		s.Loss = p.chance.Float64() / 3
	}
	if p.has(copies) {
		s.Dup = p.chance.Float64() / 3
	}
	if p.clocks {
		s.ClockOffset = p.duration(0, clockBound(i, p.Config))
	}
}

// delay draws how long messages take: always the same, a little different, or so
// differently that any of them may overtake any other.
func (p *plan) delay(hop time.Duration) sim.Dist {
	switch p.chance.IntN(4) {
	case 0:
		return sim.Constant(hop)
	case 1:
		return sim.Uniform(0, 2*hop)
	case 2:
		return sim.Exponential(hop)
	}
	return sim.Skewed(hop/100, 100*hop)
}

// clockBound is how far a clock may be from real time.
func clockBound(i protocol.Info, c protocol.Config) time.Duration {
	for _, o := range i.Options {
		if o.Name == "eps" {
			return time.Duration(i.Option(c, "eps"))
		}
	}
	return 50 * time.Millisecond
}

// Budget is how many members may be unsettled at a time: two quorums of m out of n
// share 2m-n members, so that fewer may have forgotten one of the two.
func Budget(i protocol.Info, c protocol.Config) int {
	if i.Quorum == "" || i.Tolerates&protocol.Amnesia == 0 {
		return 0
	}
	return max(0, 2*int(i.Option(c, i.Quorum))-c.N-1)
}

// allowance is how many members of a system may be unsettled at a time, and how many
// more than those that are down may be silent: the others are a quorum. Where users
// do not make up for losses, who waits counts on no member that forgot it, in vain if
// too few are left.
func allowance(i protocol.Info, settles bool, s system, beyond int) (budget, silent int) {
	budget = Budget(i, s.Config)
	if i.Quorum != "" {
		silent = s.N - int(i.Option(s.Config, i.Quorum)) - len(s.Down)
	}
	if !settles {
		budget = max(0, min(budget, silent))
	}
	return min(budget+beyond, s.N), silent
}

// patience is the number of events without an entry after which a timed run is
// stuck: several times what happens during a long hold while everybody asks again
// and again.
const patience = 1_000_000
