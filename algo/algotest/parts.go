package algotest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// codec: each message that is sent survives encoding and decoding, its encoding
// ends itself, its text is its own, and it stays as it was when sent.
func (s *suite) codec() error {
	texts := map[string][]byte{}
	type flying struct {
		msg  any
		sent []byte
	}
	var recent [256]flying
	sent, steps := 0, 0
	return s.walk(func(st step) error {
		for _, e := range st.effects {
			if e.Do != protocol.Send && e.Do != protocol.Broadcast {
				continue
			}
			b := s.alg.Append(nil, e.Msg)
			if err := s.roundTrip(e.Msg, b, sent); err != nil {
				return fmt.Errorf("%s: %s: %w", s.where(st), s.alg.Text(e.Msg), err)
			}
			text := s.alg.Text(e.Msg)
			if strings.Join(strings.Fields(text), " ") != text || text == "" {
				return fmt.Errorf("text %q: want words on one line", text)
			}
			if other, ok := texts[text]; ok && !bytes.Equal(other, b) {
				return fmt.Errorf("text %q stands for two messages, %x and %x", text, other, b)
			}
			texts[text] = b
			recent[sent%len(recent)] = flying{e.Msg, b}
			sent++
		}
		if steps++; steps%16 > 0 {
			return nil
		}
		for _, f := range recent {
			if f.sent != nil && !bytes.Equal(s.alg.Append(nil, f.msg), f.sent) {
				return fmt.Errorf("%s: a message sent before changed from %x to %x: copy out on send, copy in on receive",
					s.where(st), f.sent, s.alg.Append(nil, f.msg))
			}
		}
		return nil
	})
}

// cuts are the lengths to which an encoding of n bytes is cut short: in the quick lane one of them, another
// one each time.
func cuts(n, time int) (lengths []int) {
	for cut := range n {
		if lane.CI.Runs() || cut == time%n {
			lengths = append(lengths, cut)
		}
	}
	return lengths
}

func (s *suite) roundTrip(m any, b []byte, step int) error {
	const next = 0xa5 // the first byte of whatever follows
	got, rest, err := s.alg.Read(append(bytes.Clone(b), next))
	if err != nil {
		return fmt.Errorf("its encoding %x is refused: %w", b, err)
	}
	if len(rest) != 1 || rest[0] != next {
		return fmt.Errorf("reading its encoding %x and one more byte leaves %x", b, rest)
	}
	// Printing takes nil and empty lists for equal, and follows no pointers.
	if !reflect.DeepEqual(got, m) && fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", m) {
		return fmt.Errorf("read back as %+v, want %+v", got, m)
	}
	if s.alg.Text(got) != s.alg.Text(m) || s.alg.KindOf(got) != s.alg.KindOf(m) || s.alg.Ints(got) != s.alg.Ints(m) {
		return errors.New("its Text, KindOf or Ints differ after reading it back")
	}
	if k := s.alg.KindOf(m); k < 0 || k >= len(s.alg.Messages) {
		return fmt.Errorf("kind %d of %d in Info.Messages", k, len(s.alg.Messages))
	}
	if s.alg.Ints(m) < 0 {
		return fmt.Errorf("%d integers", s.alg.Ints(m))
	}
	for _, cut := range cuts(len(b), step) {
		if _, _, err := s.alg.Read(b[:cut]); err == nil {
			return fmt.Errorf("the first %d bytes of its encoding %x are accepted", cut, b)
		}
	}
	return nil
}

// state: the encoding of a state is a function of it, holds all that a later
// step depends on, and is refused when cut short. To show a state does not change it.
//
// What it cannot see is a state with two encodings in which the process behaves
// alike, such as a set in the order of arrival. Models then have more states
// than they should; mutant.Decided finds the worst of it.
func (s *suite) state() error {
	used := map[protocol.ID]protocol.Process[any]{}
	n, steps := 0, 0
	return s.walk(func(st step) error {
		steps++
		if st.config.N != n {
			n = st.config.N
			clear(used)
		}
		fresh := s.alg.New(st.id, st.config)
		if used[st.id] == nil {
			used[st.id] = s.alg.New(st.id, st.config)
		}
		// One copy begins empty; the other has been in another state, of which
		// nothing may remain.
		for _, p := range []protocol.Process[any]{fresh, used[st.id]} {
			if err := load(p, st.before); err != nil {
				return fmt.Errorf("%s: %w", s.where(st), err)
			}
			for range 2 {
				if got := protocol.AppendState(nil, p); !bytes.Equal(got, st.before) {
					return fmt.Errorf("%s: loaded and encoded again it is %x", s.where(st), got)
				}
			}
			if text := protocol.Show(p); strings.ContainsAny(text, "\n\t") {
				return fmt.Errorf("%s: Show tells %q, want one line", s.where(st), text)
			}
			if got := protocol.AppendState(nil, p); !bytes.Equal(got, st.before) {
				return fmt.Errorf("%s: Show changed it to %x", s.where(st), got)
			}
			if err := s.again(p, st, 0); err != nil {
				return fmt.Errorf("%s: a copy loaded from its encoding behaves differently: %w", s.where(st), err)
			}
		}
		for _, cut := range cuts(len(st.after), steps) {
			if _, err := protocol.LoadState(st.after[:cut], fresh); err == nil {
				return fmt.Errorf("%s: LoadState accepts the first %d bytes of %x", s.where(st), cut, st.after)
			}
		}
		return nil
	})
}

// shift: when all values of a counter that exist are larger by a constant, a step
// does the same, only with larger ones. The checker relies on that claim.
func (s *suite) shift() error {
	if s.alg.MapState == nil {
		return fmt.Errorf("%w: %s makes no claim about its counters", errNothing, s.alg.Name)
	}
	const constant = 1_000_003 // a prime: no step has it for a period
	existing := map[protocol.Counter]bool{}
	note := func(c protocol.Counter, v uint64) uint64 {
		existing[c] = true
		return v
	}
	later := func(c protocol.Counter, v uint64) uint64 {
		if existing[c] {
			return v + constant
		}
		return v // it begins with this step
	}
	mapMsg := func(from, to protocol.ID, m any, f func(protocol.Counter, uint64) uint64) any {
		// A message may hold frozen memory, so map a copy.
		c, _, err := s.alg.Read(s.alg.Append(nil, m))
		if err != nil {
			panic(err) // the part Codec has read it
		}
		s.alg.MapMsg(protocol.Channel{From: from, To: to}, &c, f)
		return c
	}
	mapState := func(st step, b []byte, f func(protocol.Counter, uint64) uint64) (protocol.Process[any], error) {
		p := s.alg.New(st.id, st.config)
		err := load(p, b)
		if err == nil {
			s.alg.MapState(p, f)
		}
		return p, err
	}
	return s.walk(func(st step) error {
		// As in the checker, hybrid clocks are logical ones.
		st.event.Now = 0
		clear(existing)
		if _, err := mapState(st, st.before, note); err != nil {
			return err
		}
		if st.event.Kind == protocol.Receive {
			mapMsg(st.event.From, st.id, st.event.Msg, note)
		}
		p, err := mapState(st, st.before, later)
		if err != nil {
			return err
		}
		q := s.alg.New(st.id, st.config)
		if err := load(q, st.before); err != nil {
			return err
		}
		var out protocol.Out[any]
		q.Step(st.event, &out)
		want, err := mapState(st, protocol.AppendState(nil, q), later)
		if err != nil {
			return err
		}
		shifted := step{st.id, st.config, st.event, protocol.AppendState(nil, p), nil, protocol.AppendState(nil, want)}
		if st.event.Kind == protocol.Receive {
			shifted.event.Msg = mapMsg(st.event.From, st.id, st.event.Msg, later)
		}
		for _, e := range out.Effects {
			if e.Do == protocol.Send || e.Do == protocol.Broadcast {
				// The counters of a broadcast are those of each of its copies.
				e.Msg = mapMsg(st.id, e.To, e.Msg, later)
			}
			shifted.effects = append(shifted.effects, e)
		}
		if err := s.again(p, shifted, constant); err != nil {
			return fmt.Errorf("%s: with all counters larger by %d it does something else: %w", s.where(st), constant, err)
		}
		return nil
	})
}

// determinism: equal seeds give equal logs.
func (s *suite) determinism() error {
	c := s.faulty(s.Sizes[len(s.Sizes)-1])
	c.Digest = true
	run := func(seed uint64) (string, error) {
		c.Seed = seed
		r, err := s.watch(c, func(step) error { return nil })
		return r.LogSHA256, err
	}
	first, err := run(1)
	if err != nil {
		return err
	}
	second, err := run(1)
	if err != nil {
		return err
	}
	if first != second {
		return fmt.Errorf("two runs with seed 1 differ (n=%d): something other than state and event decides", c.N)
	}
	third, err := run(2)
	if err != nil {
		return err
	}
	if third == first {
		return errors.New("the runs with seeds 1 and 2 are equal: the log shows nothing")
	}
	return nil
}

// allocations: a step in steady state makes none, or few. The steps of a run are taken again by
// processes made anew, with nothing else between them.
func (s *suite) allocations() error {
	const warmUp = 1000
	c := s.faultless(s.Sizes[len(s.Sizes)-1])
	if c.Entries = []int{200}; s.elects() {
		c = s.faulty(c.N)
		c.FaultsUntil = 30 * time.Second
	}
	var run taken
	a := s.alg
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[any] {
		run.made = append(run.made, made{id, c})
		return &recorded{s.alg.New(id, c), len(run.made) - 1, &run}
	}
	if _, err := sim.Run(a, c); err != nil {
		return err
	}
	n := len(run.steps)
	if n < 2*warmUp {
		return fmt.Errorf("only %d steps: too few to speak of a steady state", n)
	}
	// The runtime itself allocates once in a while: that a step does shows each time.
	const noise, tries = 0.002, 3
	got := math.Inf(1)
	for try := 0; try < tries && got > s.Allocations+noise; try++ {
		allocations, same := s.replay(run, warmUp)
		if !same {
			return errors.New("steps taken again have other effects: a message was changed after it was sent")
		}
		got = min(got, float64(allocations)/float64(n-warmUp))
	}
	if got > s.Allocations+noise {
		return fmt.Errorf("%.4f allocations a step in steady state (n=%d, %d steps), want at most %g",
			got, c.N, n-warmUp, s.Allocations)
	}
	return nil
}

// A taken run is one to be taken again.
type taken struct {
	made  []made // processes
	steps []takenStep
}

type made struct {
	id     protocol.ID
	config protocol.Config
}

type takenStep struct {
	process int // of those made
	event   protocol.Event[any]
	effects int // how many it had
}

type recorded struct {
	protocol.Process[any]
	number int
	run    *taken
}

// Step implements protocol.Process.
func (p *recorded) Step(ev protocol.Event[any], out *protocol.Out[any]) {
	before := len(out.Effects)
	p.Process.Step(ev, out)
	p.run.steps = append(p.run.steps, takenStep{p.number, ev, len(out.Effects) - before})
}

// A replay takes a run again, by processes made anew, and counts what steps allocate after the first ones. same says
// that each had as many effects as before.
type replay func(run taken, warmUp int) (allocations uint64, same bool)

func replays[M any](a protocol.Algorithm[M]) replay {
	return func(run taken, warmUp int) (allocations uint64, same bool) {
		var processes []protocol.Process[M]
		for _, m := range run.made {
			processes = append(processes, a.New(m.id, m.config))
		}
		events := make([]protocol.Event[M], len(run.steps))
		for i, st := range run.steps {
			msg, _ := st.event.Msg.(M)
			events[i] = protocol.Event[M]{Input: st.event.Input, Msg: msg}
		}
		same = true
		var out protocol.Out[M]
		var before, after runtime.MemStats
		for i, st := range run.steps {
			if i == warmUp {
				runtime.ReadMemStats(&before)
			}
			out.Reset()
			processes[st.process].Step(events[i], &out)
			same = same && len(out.Effects) == st.effects
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs, same
	}
}

// events: what the model allows never panics, and what it excludes always does:
// a driver relies on both.
func (s *suite) events() error {
	n := s.Sizes[0]
	c := check.Config{
		Config:     protocol.Config{N: n, Options: s.Options.Options},
		Properties: []string{check.Model},
		MaxMemory:  16 << 20, // a bounded part is enough: this is no proof
	}
	i := s.alg.Info
	ids := []protocol.ID{0}
	if i.Users == protocol.Clients {
		c.Clients = 2
		ids = append(ids, protocol.ID(n))
	}
	c.Crash, c.Amnesia = one(i.Tolerates&protocol.Crash != 0), one(i.Tolerates&protocol.Amnesia != 0)
	c.Recover = one(i.Tolerates&protocol.Recovery != 0 && i.Users != protocol.Clients)
	c.Suspect = one(i.Detector == protocol.LeaseDetector || i.Detector == protocol.UnreliableDetector)
	c.Cancel, c.Drain = one(i.Cancels), one(i.Drains)
	v, err := check.Run(s.alg, c)
	if err != nil {
		return err
	}
	if v.Verdict == check.Violated {
		return fmt.Errorf("%s:\n%s\n%s", v.Bounds, strings.Join(v.Trace, "\n"), v.Reason)
	}

	excluded := map[string]protocol.Input{
		"an unknown kind":  {Kind: 255},
		"the kind 0":       {},
		"an unknown timer": {Kind: protocol.Timeout, Timer: 1 << 31},
	}
	if i.Registers != nil {
		excluded["Receive"] = protocol.NewReceive(1)
	}
	if s.elects() {
		excluded["Try"] = protocol.Input{Kind: protocol.Try}
		excluded["Exit"] = protocol.Input{Kind: protocol.Exit}
	}
	if !i.Cancels {
		excluded["Cancel"] = protocol.Input{Kind: protocol.Cancel}
	}
	if !i.Drains {
		excluded["Drain"] = protocol.Input{Kind: protocol.Drain}
	}
	if i.Detector == protocol.NoDetector {
		excluded["Suspect"] = protocol.NewSuspect(1)
		excluded["Restore"] = protocol.Input{Kind: protocol.Restore, From: 1}
	}
	for what, in := range excluded {
		for _, id := range ids {
			p := s.alg.New(id, c.Config)
			var out protocol.Out[any]
			p.Step(protocol.Event[any]{Input: protocol.Input{Kind: protocol.Start}}, &out)
			if !panics(func() { p.Step(protocol.Event[any]{Input: in}, &out) }) {
				return fmt.Errorf("process %d takes %s, which its model excludes, without a panic", id, what)
			}
		}
	}
	return nil
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

// claims: the simulator measures what Info promises, of a group algorithm also where each user
// wants a group of its own.
func (s *suite) claims() error {
	if s.elects() {
		return errNothing // claims are about entries
	}
	if err := s.measure(false); err != nil || !s.alg.Grouped {
		return err
	}
	if err := s.measure(true); err != nil {
		return fmt.Errorf("with groups that differ: %w", err)
	}
	return nil
}

// measure compares claims with simulations. Who deadlocks promises nothing of high load, where
// a run would end in that.
func (s *suite) measure(distinct bool) error {
	for _, n := range s.Sizes {
		for _, load := range []protocol.Load{protocol.LowLoad, protocol.HighLoad} {
			if load == protocol.HighLoad && slices.Contains(s.alg.Lacks, check.Deadlock) {
				continue
			}
			c := s.faultless(n)
			if s.alg.Weak {
				c.Operations = []int{0} // an entry is claimed, not what users do inside
			}
			name := "high"
			if load == protocol.LowLoad {
				c.Think, name = sim.Constant(time.Second), "low"
			}
			for u := 0; distinct && u < cmp.Or(c.Clients, c.N); u++ {
				c.Wants = append(c.Wants, protocol.Groups(strconv.Itoa(u+1)))
			}
			r, err := sim.Run(s.alg, c)
			if err != nil {
				return err
			}
			if len(r.Violations) > 0 {
				return fmt.Errorf("n=%d, %s load: %s", n, name, r.Violations[0])
			}
			for _, claim := range s.alg.Claims {
				if claim.Load != load {
					continue
				}
				measure, got := measured(claim.Measure, r)
				least, most := claim.Least(c.Config), claim.Most(c.Config)
				const rounding = 1e-9
				if got < least-rounding || got > most+rounding {
					return fmt.Errorf("n=%d, %s load: %s is %g, claimed %g to %g", n, name, measure, got, least, most)
				}
			}
		}
	}
	return nil
}

// measured is a measure of a run with a constant delay of 1 ms, which is a hop.
func measured(m protocol.Measure, r sim.Result) (name string, v float64) {
	switch m {
	case protocol.Messages:
		return "messages an entry", r.MessagesPerEntry
	case protocol.ToEnter:
		return "messages to enter", r.MessagesToEnter
	case protocol.Waiting:
		return "waiting in hops", r.Waiting.Mean
	case protocol.SyncDelay:
		return "synchronization delay in hops", r.SyncDelay.Mean
	case protocol.Accesses:
		return "accesses an entry", r.AccessesPerEntry
	}
	panic(fmt.Sprintf("algotest: unknown measure %d", m))
}

// exhaustive: in a small model all properties hold. All claims about it are true there,
// and those that reduce it are so where they do.
func (s *suite) exhaustive() error {
	for _, c := range s.Exhaustive {
		c.Verify, c.Properties = true, s.promised(c.Properties)
		reduced := c
		reduced.Reduce = []string{check.ReduceOrder, check.ReduceSymmetry}
		for _, c := range []check.Config{c, reduced} {
			if err := holds(s.alg, c); err != nil {
				return err
			}
			if s.alg.Confluent == nil && s.alg.Interchangeable == nil {
				break
			}
		}
	}
	return nil
}

// order: where Info claims it, and does not take that back, the small models have the
// property causal.Order too.
func (s *suite) order() error {
	if !s.alg.Ordered || slices.Contains(s.alg.Refuted, causal.Order) {
		return errNothing
	}
	for _, c := range s.Exhaustive {
		c.Properties = []string{causal.Order}
		if err := holds(protocol.Erase(causal.Of(s.alg)), c); err != nil {
			return err
		}
	}
	return nil
}
