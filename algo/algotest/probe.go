package algotest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// A step is what a probe saw one process do.
type step struct {
	id      protocol.ID
	config  protocol.Config
	event   protocol.Event[any]
	before  []byte // its state
	effects []protocol.Effect[any]
	after   []byte
}

// probed is the algorithm with a probe around each process. look sees each step
// and returns what is wrong with it; the first error becomes *found and ends the
// run.
//
// The simulator's users neither cancel nor try only once, so the probe does both
// for them, now and then.
func (s *suite) probed(seed uint64, look func(step) error, found *error) protocol.Algorithm[any] {
	random := rand.New(rand.NewPCG(seed, 0))
	a := s.alg
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[any] {
		return &probe{Process: s.alg.New(id, c), suite: s, id: id, config: c, random: random, look: look, found: found}
	}
	return a
}

type probe struct {
	protocol.Process[any]
	suite  *suite
	id     protocol.ID
	config protocol.Config
	random *rand.Rand
	look   func(step) error
	found  *error
	trying bool
	before []byte
	after  []byte
}

// Step implements protocol.Process.
func (p *probe) Step(ev protocol.Event[any], out *protocol.Out[any]) {
	if ev.Kind == protocol.Try {
		p.trying = true
		if p.random.IntN(4) == 0 {
			ev.Arg = protocol.TryOnce
		}
	}
	p.step(ev, out)
	if p.trying && ev.Kind != protocol.Try && p.suite.alg.Cancels && p.random.IntN(16) == 0 {
		p.step(protocol.Event[any]{Input: protocol.Input{Kind: protocol.Cancel, Now: ev.Now}}, out)
	}
}

func (p *probe) step(ev protocol.Event[any], out *protocol.Out[any]) {
	p.before = protocol.AppendState(p.before[:0], p)
	from := len(out.Effects)
	p.Process.Step(ev, out)
	p.after = protocol.AppendState(p.after[:0], p)
	effects := out.Effects[from:]
	for _, e := range effects {
		if e.Do == protocol.Crit || e.Do == protocol.Rem {
			p.trying = false
		}
	}
	if *p.found = p.look(step{p.id, p.config, ev, p.before, effects, p.after}); *p.found != nil {
		panic("algotest: stop here") // the simulator ends the run
	}
}

// faultless is a run with users at high load.
func (s *suite) faultless(n int) sim.Config {
	c := sim.Config{
		Config:  protocol.Config{N: n, Options: s.Options.Options},
		Entries: []int{20},
		Delay:   sim.Constant(time.Millisecond),
		Think:   sim.Constant(0),
		Hold:    sim.Constant(time.Millisecond),
		FIFO:    s.alg.FIFO,
	}
	if s.alg.Users == protocol.Clients {
		c.Clients = 3
	}
	return c
}

// calm is a run without faults in which every time is random.
func (s *suite) calm(n int) sim.Config {
	c := s.faultless(n)
	c.Entries, c.Seed = []int{30}, uint64(n)
	if c.Delay = sim.Exponential(time.Millisecond); s.alg.Synchronous {
		c.Delay = sim.Constant(time.Millisecond) // a time-out exceeds a round trip
	}
	if s.elects() {
		c.Entries, c.FaultsUntil = nil, 3*time.Second
	}
	c.Think = sim.Exponential(5 * time.Millisecond)
	c.Hold = sim.Exponential(time.Millisecond)
	return c
}

// faulty is a calm run with all faults that the algorithm's model allows.
func (s *suite) faulty(n int) sim.Config {
	c := s.calm(n)
	c.Seed += 1000
	if s.alg.Tolerates&protocol.Amnesia != 0 {
		c.AmnesiaEvery = 23 * time.Millisecond
	}
	if s.alg.Tolerates&protocol.Crash != 0 {
		c.CrashEvery = 41 * time.Millisecond
	}
	if s.alg.Tolerates&protocol.Recovery != 0 {
		c.RecoverEvery = 29 * time.Millisecond
	}
	if s.alg.Detector == protocol.UnreliableDetector && !s.alg.Synchronous {
		c.PartitionEvery = 31 * time.Millisecond
	}
	if s.alg.Detector == protocol.LeaseDetector {
		c.PartitionEvery, c.Lease = 31*time.Millisecond, 10*time.Millisecond
	}
	for k := range 10 {
		if s.alg.Drains {
			drain := scenario.Step{Verb: scenario.Drain, Procs: []protocol.ID{protocol.ID(k % n)}}
			drain.At = time.Duration(10+40*k) * time.Millisecond
			c.Faults = append(c.Faults, drain)
		}
	}
	return c
}

// enough is how many steps of a faulty run are looked at. Faults that come so
// often may keep an algorithm from ever finishing.
const enough = 5000

// errEnough ends a run that has been looked at for long enough.
var errEnough = errors.New("algotest: enough steps")

// walk makes a calm run and a faulty run at each size, and shows each step to
// look. A violation is not its business: too many faults at once may well lead to
// one.
func (s *suite) walk(look func(step) error) error {
	for _, n := range s.Sizes {
		for _, c := range []sim.Config{s.calm(n), s.faulty(n)} {
			if _, err := s.watch(c, look); err != nil {
				return fmt.Errorf("n=%d, seed %d: %w", n, c.Seed, err)
			}
		}
	}
	return nil
}

// watch makes one run, and shows the first of its steps to look.
func (s *suite) watch(c sim.Config, look func(step) error) (sim.Result, error) {
	var found error
	steps := 0
	r, err := sim.Run(s.probed(c.Seed, func(st step) error {
		if steps++; steps > enough {
			return errEnough
		}
		return look(st)
	}, &found), c)
	switch {
	case err != nil:
		return r, err
	case errors.Is(found, errEnough):
		return r, nil
	case found == nil && r.ViolationsOf["panic"] > 0:
		return r, fmt.Errorf("a panic: %v", r.Violations)
	}
	return r, found
}

// where says which step it is, for an error.
func (s *suite) where(st step) string {
	text := fmt.Sprintf("process %d, event %d", st.id, st.event.Kind)
	if st.event.Kind == protocol.Receive {
		text += fmt.Sprintf(" %s from %d", s.alg.Text(st.event.Msg), st.event.From)
	}
	return fmt.Sprintf("%s in state %x", text, st.before)
}

// again makes the step on a process loaded from its bytes, p, and compares. A
// fencing token may be a counter, or be counted in units of one, and then it may be later by a multiple of the given constant.
func (s *suite) again(p protocol.Process[any], st step, later uint64) error {
	if err := load(p, st.before); err != nil {
		return err
	}
	var out protocol.Out[any]
	p.Step(st.event, &out)
	for i := range min(len(out.Effects), len(st.effects)) {
		if e, want := &out.Effects[i], st.effects[i].Arg; e.Do == protocol.Crit && later > 0 && (e.Arg-want)%later == 0 {
			e.Arg = want
		}
	}
	if err := s.sameEffects(out.Effects, st.effects); err != nil {
		return err
	}
	if got := protocol.AppendState(nil, p); !bytes.Equal(got, st.after) {
		return fmt.Errorf("the state became %x, want %x", got, st.after)
	}
	return nil
}

func load(p protocol.Process[any], b []byte) error {
	rest, err := protocol.LoadState(b, p)
	if err != nil {
		return fmt.Errorf("its own encoding %x is refused: %w", b, err)
	}
	if len(rest) != 0 {
		return fmt.Errorf("%d bytes of its own encoding %x are left", len(rest), b)
	}
	return nil
}

// sameEffects compares effects, but for the durations of timers: those may
// depend on what is not part of the state, because the checker drops them.
func (s *suite) sameEffects(got, want []protocol.Effect[any]) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d effects, want %d", len(got), len(want))
	}
	for i := range got {
		g, w := got[i].Act, want[i].Act
		if g.Do == protocol.SetTimer && w.Do == protocol.SetTimer {
			g.After, g.Arg, w.After, w.Arg = 0, 0, 0, 0
		}
		if g != w {
			return fmt.Errorf("effect %d is %+v, want %+v", i, g, w)
		}
		if g.Do != protocol.Send && g.Do != protocol.Broadcast {
			continue
		}
		if !bytes.Equal(s.alg.Append(nil, got[i].Msg), s.alg.Append(nil, want[i].Msg)) {
			return fmt.Errorf("effect %d carries %s, want %s", i, s.alg.Text(got[i].Msg), s.alg.Text(want[i].Msg))
		}
	}
	return nil
}
