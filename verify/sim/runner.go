package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/workload"
	"github.com/poundlock/poundlock/verify/world"
)

// Run simulates one run of a. Errors wrap ErrConfig, except for those of
// Config.Trace and Config.History; whatever goes wrong in the run is in Result.Violations.
// It boxes messages, so that the simulator is compiled once: a Runner of a does not.
func Run[M any](a protocol.Algorithm[M], c Config) (Result, error) {
	return NewRunner(protocol.Erase(a)).Run(c)
}

// A Runner simulates one run of an algorithm after another, each in the memory of
// the one before, and is compiled for the type of its messages: for many runs, or long ones. It is
// for one goroutine at a time.
type Runner[M any] struct{ s simulator[M] }

// NewRunner returns a Runner of a.
func NewRunner[M any](a protocol.Algorithm[M]) *Runner[M] {
	r := &Runner[M]{simulator[M]{alg: a, engine: engine{queue: new(queue)}}}
	r.s.engine.steps = &r.s
	return r
}

// Run is like the function Run: what it returns does not depend on earlier runs,
// and shares no memory with later ones.
func (r *Runner[M]) Run(c Config) (Result, error) {
	a := &r.s.alg
	a.Share(c.Wants != nil || c.Groups != 0)
	rules, err := c.prepare(a.Info, a.Unsettled != nil, func() any { return a.New(protocol.ID(c.N-1), c.Config) })
	if err != nil {
		return Result{}, err
	}
	began := time.Now()
	r.s.reset(c, rules)
	r.s.run()
	if r.s.engine.refused != nil {
		return Result{}, r.s.engine.refused
	}
	return r.s.engine.result(time.Since(began))
}

// prepare completes c for an algorithm, or refuses it. Create makes its last member.
func (c *Config) prepare(i protocol.Info, settles bool, create func() any) (*world.Rules, error) {
	rules, err := c.Complete(i)
	if err == nil && c.Spaced > 0 && !settles {
		err = fmt.Errorf("spaced=%d: its users make up for no losses", c.Spaced)
	}
	if err == nil {
		err = checkState(c, create)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, i.Name, err)
	}
	return rules, nil
}

// reset makes s the simulator of a run that has not begun. It keeps memory of an
// earlier run, and nothing else.
func (s *simulator[M]) reset(c Config, rules *world.Rules) {
	s.engine.reset(c, rules)
	clear(s.cores)
	s.cores, s.flights, s.free = s.cores[:0], s.flights[:0], none
	s.out.Reset()
	s.decided = nil
}

func (s *engine) reset(c Config, rules *world.Rules) {
	system := c.System()
	_, k := system.Users(rules.Info)
	constant := c.Delay.Shape == workload.ConstantShape
	even := constant && c.Bandwidth == 0
	s.queue.reset(c.Delay.Mean(), even, c.N+c.Clients)
	*s = engine{
		Rules:    *rules,
		steps:    s.steps,
		cfg:      c,
		queue:    s.queue,
		procs:    slices.Grow(s.procs[:0], c.N+c.Clients),
		users:    sized(s.users, k),
		active:   k,
		monitor:  s.monitor,
		faults:   s.faults.reset(),
		memory:   memory{cells: s.memory.cells},
		load:     s.load,
		log:      newLog(c),
		even:     even,
		oneItem:  constant && (even || !c.FIFO),
		ordered:  c.FIFO && !even,
		overhead: sized(s.overhead, len(rules.Messages)),
		counts:   counts{byKind: sized(s.byKind, len(rules.Messages))},
		setToken: -1,
	}
	if c.Bandwidth > 0 {
		s.bit32 = 32e3 / c.Bandwidth
	}
	s.load.Reset(c.Workload())
	s.total = s.load.Total()
	s.monitor.Reset(k)
	if s.Elects() {
		s.says = make(history.Leaders, c.N)
	}
	s.monitor.Name = func(u int) string { return s.Names.Of(protocol.ID(s.users[u].proc)) }
	if c.History != nil {
		s.monitor.Record = func(e history.Event) { _ = c.History.Write(e) } // result asks for its error
	}
	for i, m := range s.Info.Messages {
		s.overhead[i] = m.Overhead
		if m.Name == "SETTOKEN" {
			s.setToken = i
		}
	}
	for _, o := range s.Info.Options {
		if o.Name == "eps" {
			s.settled = 6 * s.Info.Option(c.Config, "eps")
		}
	}
	s.weak.reset(s.Info, c)
	s.monitor.Weak = s.Weak
	s.faults.random.Begin(c.Seed, workload.ForFaults, 0)
	s.faults.detector.Begin(c.Seed, workload.ForFaults, 1)
	s.losses.Begin(c.Seed, workload.ForChannels, 0)
	if s.Memory != nil {
		s.memory.reset(s.Memory)
		s.memory.random.Begin(c.Seed, workload.ForRegisters, 0)
	}
}

// sized is a slice of n zeros, in the memory of x if that is enough.
func sized[E any](x []E, n int) []E {
	x = slices.Grow(x[:0], n)[:n]
	clear(x)
	return x
}

// open makes the next process id, and gives it its random streams.
func (s *engine) open() uint32 {
	id := uint32(len(s.procs))
	s.procs = slices.Grow(s.procs, 1)[:id+1]
	p := &s.procs[id]
	*p = process{user: -1, timers: p.timers[:0], last: p.last[:0], random: p.random, open: p.open[:0]}
	if p.random == nil {
		p.random = new(randoms)
	}
	p.random.delay.Begin(s.cfg.Seed, workload.ForDelay, uint64(id))
	p.random.jitter.Begin(s.cfg.Seed, workload.ForJitter, uint64(id))
	p.random.clock.Begin(s.cfg.Seed, workload.ForClock, uint64(id))
	return id
}
