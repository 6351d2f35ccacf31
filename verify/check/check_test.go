package check_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
	environment "github.com/poundlock/poundlock/verify/world"
)

// run checks a with c and fails the test on an error.
func run[M any](t testing.TB, a protocol.Algorithm[M], c check.Config) check.Verdict {
	t.Helper()
	v, err := check.Run(a, c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// wants compares the verdict with the property and the trace that it must have.
func wants(t testing.TB, v check.Verdict, result check.Result, property string, trace ...string) {
	t.Helper()
	if v.Verdict != result || property != "" && v.Property != property || !slices.Equal(v.Trace, trace) {
		t.Errorf("%s: %s (%s)\n%s\nwant %s: %s\n%s", v.Verdict, v.Property, v.Reason, strings.Join(v.Trace, "\n"),
			result, property, strings.Join(trace, "\n"))
	}
	for _, p := range v.Properties {
		if p.Property == v.Property && (p.Verdict != v.Verdict || !slices.Equal(p.Trace, v.Trace)) {
			t.Errorf("property %+v differs from the verdict", p)
		}
	}
}

// The numbers of states of Ricart-Agrawala with three processes. With the clock
// on REPLY there are more, because more clock values differ; with counters moved
// there are fewer, and finitely many for unlimited entries.
func TestRicartAgrawala(t *testing.T) {
	for _, c := range []struct {
		a                   protocol.Algorithm[ricartagrawala.Message]
		entries             int
		noShift             bool
		states, transitions int64
	}{
		{ricartagrawala.Printed, 1, true, 2822, 9005},
		{ricartagrawala.Printed, 2, true, 37229, 125212},
		{ricartagrawala.Printed, 2, false, 21489, 73368},
		{ricartagrawala.Printed, check.Unlimited, false, 2680, 9498},
		{ricartagrawala.Algorithm, 1, true, 4522, 14644},
		{ricartagrawala.Algorithm, 2, true, 104796, 372938},
		{ricartagrawala.Algorithm, 2, false, 55383, 197836},
		{ricartagrawala.Algorithm, check.Unlimited, false, 9797, 36570},
	} {
		k := config(3)
		k.Entries, k.NoShift = []int{c.entries}, c.noShift
		v := run(t, c.a, k)
		if v.Verdict != check.Holds || v.States != c.states || v.Transitions != c.transitions {
			t.Errorf("%q, %s: %s, %d states, %d transitions (%s), want holds, %d, %d",
				c.a.Variant, v.Bounds, v.Verdict, v.States, v.Transitions, v.Reason, c.states, c.transitions)
		}
		if shifted := strings.Contains(v.Bounds, "counters shifted"); shifted == c.noShift {
			t.Errorf("bounds %q: counters shifted is %v", v.Bounds, shifted)
		}
	}
}

// Without ids that break ties two processes with equal timestamps reply to each
// other at once.
func TestTieBreak(t *testing.T) {
	v := run(t, withoutTieBreak(), config(3))
	if v.Verdict != check.Violated || v.Property != check.Exclusion || len(v.Trace) != 10 {
		t.Errorf("%s: %s after %d steps, want exclusion violated after 10", v.Verdict, v.Property, len(v.Trace))
	}
}

// withoutTieBreak renumbers the senders of requests so that each receiver
// believes that the other one comes first.
func withoutTieBreak() protocol.Algorithm[ricartagrawala.Message] {
	a := ricartagrawala.Printed
	inner := a.New
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[ricartagrawala.Message] {
		return &untied{inner(id, c)}
	}
	a.MapState = nil
	return a
}

type untied struct {
	protocol.Process[ricartagrawala.Message]
}

// Step replies at once to a request with the timestamp of its own, as if the
// sender's id were the smaller one: it makes the timestamp seem smaller by one.
func (p *untied) Step(ev protocol.Event[ricartagrawala.Message], out *protocol.Out[ricartagrawala.Message]) {
	if ev.Kind == protocol.Receive && ev.Msg.Kind == ricartagrawala.Request {
		ev.Msg.Time--
	}
	p.Process.Step(ev, out)
}

func TestExclusion(t *testing.T) {
	v := run(t, algorithm(peers, enter), config(2))
	wants(t, v, check.Violated, check.Exclusion, "try p1", "try p2")
	if v.Property != check.Exclusion || !strings.Contains(v.Reason, "p1 and p2") {
		t.Errorf("reason %q", v.Reason)
	}
	if got := v.Run.Steps[0].Did(); !slices.Equal(got, []string{"p1 enters"}) {
		t.Errorf("the first step did %q", got)
	}
}

func TestWellFormed(t *testing.T) {
	twice := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		enter(p, ev, out)
		if ev.Kind == protocol.Exit {
			out.Crit(0)
		}
	}
	v := run(t, algorithm(peers, twice), config(1))
	wants(t, v, check.Violated, check.WellFormed, "try p1", "exit p1")
	c := config(1)
	c.Properties = []string{check.Exclusion}
	wants(t, run(t, algorithm(peers, twice), c), check.Holds, check.Exclusion)
}

func TestDeadlock(t *testing.T) {
	v := run(t, algorithm(peers, wait), config(2))
	wants(t, v, check.Violated, check.Deadlock, "try p1")
	// A timer that changes nothing is no way out.
	tick := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) { out.SetTimer(1, 1, 0) }
	wants(t, run(t, algorithm(peers, tick), config(2)), check.Violated, check.Deadlock, "try p1")
	// Neither is a fault that need not happen.
	c := config(1)
	c.Clients, c.Crash = 1, 1
	wants(t, run(t, algorithm(clients, wait), c), check.Violated, check.Deadlock, "try c1")
}

// A state that is stuck only because a bound cut its successors is no deadlock.
func TestCut(t *testing.T) {
	count := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		p.r[0]++
		out.SetTimer(7, 1, 0)
	}
	a := algorithm(peers, count)
	a.Bounds = []protocol.Bound{protocol.NewBound("count", 4, func(p *toy) uint64 { return p.r[0] })}
	v := run(t, a, config(1))
	wants(t, v, check.Holds, check.Exclusion)
	if want := "count <= 4 (3 steps cut)"; !strings.Contains(v.Bounds, want) {
		t.Errorf("bounds %q, want %q", v.Bounds, want)
	}
}

func TestMemoryCap(t *testing.T) {
	c := config(3)
	c.Entries, c.MaxMemory = []int{check.Unlimited}, 2<<20
	a := ricartagrawala.Algorithm
	a.MapState = nil // so that the clocks grow for ever
	v := run(t, a, c)
	wants(t, v, check.Undecided, check.Exclusion)
	if !strings.Contains(v.Bounds, "memory cap of 2 MiB with depth") || v.States < 1000 || v.Depth < 5 {
		t.Errorf("%d states, depth %d, %s", v.States, v.Depth, v.Bounds)
	}
	for _, p := range v.Properties {
		if p.Verdict != check.Undecided {
			t.Errorf("%+v", p)
		}
	}
}

func TestDone(t *testing.T) {
	done := make(chan struct{})
	close(done)
	c := config(4)
	c.Done = done
	v := run(t, ricartagrawala.Algorithm, c)
	if v.Verdict != check.Undecided || !strings.Contains(v.Bounds, "interrupted with depth") {
		t.Errorf("%s: %s", v.Verdict, v.Bounds)
	}
}

// A periodic sender: the multiset of its messages has no end, the set of them has.
func TestIdempotent(t *testing.T) {
	beat := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch ev.Kind {
		case protocol.Start, protocol.Timeout:
			out.SetTimer(1, 1, 0)
			out.Broadcast(1)
		case protocol.Receive:
			p.r[0] = 1
		}
	}
	a, c := algorithm(peers, beat), config(2)
	c.Entries, c.MaxMemory = []int{0}, 4<<20
	wants(t, run(t, a, c), check.Undecided, check.Exclusion)
	a.Idempotent = func(uint8) bool { return true }
	v := run(t, a, c)
	wants(t, v, check.Holds, check.Exclusion)
	// For each direction: on its way at first, on its way again, or not on its way.
	if v.States != 3*3 {
		t.Errorf("%d states, want 9", v.States)
	}
}

// Two messages of one sender: FIFO channels keep their order.
func TestChannels(t *testing.T) {
	pair := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch ev.Kind {
		case protocol.Try:
			out.Broadcast(2)
			out.Broadcast(1)
			out.Crit(0)
		case protocol.Exit:
			out.Rem()
		case protocol.Receive:
			if p.r[0] = p.r[0]*4 + uint64(ev.Msg); p.r[0] == 1 {
				panic("the second message came first")
			}
		}
	}
	c := config(2)
	c.Entries = []int{1, 0}
	v := run(t, algorithm(peers, pair), c)
	wants(t, v, check.Violated, check.Model, "try p1", "deliver p1 p2 M(1)")
	if v.Reason != "model: panic: the second message came first" {
		t.Errorf("reason %q", v.Reason)
	}
	c.FIFO = true
	v = run(t, algorithm(peers, pair), c)
	wants(t, v, check.Holds, check.Exclusion)
	// The initial state, then 0, 1 or 2 messages received, before or after the exit.
	if v.States != 1+3*2 {
		t.Errorf("%d states, want 7", v.States)
	}
	c.FIFO = false
	needs := peers
	needs.FIFO = true
	wants(t, run(t, algorithm(needs, pair), c), check.Holds, check.Exclusion)
}

// A bad message, a bad effect and a bad state are verdicts too.
func TestModel(t *testing.T) {
	for name, step := range map[string]program{
		"p1 sends M(1) to p1": func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
			if ev.Kind == protocol.Try {
				out.Send(p.id, 1)
			}
		},
		"p1 sends M(1) to p10": func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
			if ev.Kind == protocol.Try {
				out.Send(9, 1)
			}
		},
	} {
		v := run(t, algorithm(peers, step), config(1))
		wants(t, v, check.Violated, check.Model, "try p1")
		if !strings.Contains(v.Reason, name) {
			t.Errorf("reason %q, want %q", v.Reason, name)
		}
	}
	v := run(t, algorithm(peers, func(*toy, protocol.Event[uint8], *protocol.Out[uint8]) { panic("at once") }), config(1))
	wants(t, v, check.Violated, check.Model)
}

// An algorithm whose clock is not moved by its MapState makes no claim to rely on.
func TestFalseClaim(t *testing.T) {
	clock := func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		enter(p, ev, out)
		if ev.Kind == protocol.Try && p.r[0] > 9 {
			p.r[1] = 1
		}
		p.r[0]++
	}
	a, c := algorithm(peers, clock), config(1)
	a.MapState = func(p protocol.Process[uint8], f func(protocol.Counter, uint64) uint64) {
		p.(*toy).r[0] = f(protocol.Counter{}, p.(*toy).r[0])
	}
	a.MapMsg = func(protocol.Channel, *uint8, func(protocol.Counter, uint64) uint64) {}
	c.Entries = []int{check.Unlimited}
	if _, err := check.Run(a, c); !errors.Is(err, check.ErrClaim) {
		t.Errorf("error %v, want ErrClaim", err)
	}
}

func TestInvariant(t *testing.T) {
	a := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if ev.Kind == protocol.Try {
			out.Broadcast(5)
		}
		if ev.Kind == protocol.Receive {
			p.r[0] = uint64(ev.Msg)
			out.Send(ev.From, 6)
		}
	})
	a.Invariants = []protocol.Invariant{
		{Name: "toy/never-six", Err: func(v *protocol.View) error {
			for ch, m := range protocol.InFlight[uint8](v) {
				if m == 6 && ch.To == 0 && toyIn(v.Procs[1]).r[0] == 5 && v.Users[0] == protocol.InTry {
					return fmt.Errorf("six")
				}
			}
			return nil
		}},
	}
	c := config(2)
	c.Entries = []int{1, 0}
	v := run(t, a, c)
	wants(t, v, check.Violated, "toy/never-six", "try p1", "deliver p1 p2 M(5)")
	c.Properties = []string{check.Exclusion, check.WellFormed}
	wants(t, run(t, a, c), check.Holds, check.Exclusion)
}

func TestConfigErrors(t *testing.T) {
	for want, change := range map[string]func(c *check.Config){
		"0 members":                             func(c *check.Config) { c.N = 0 },
		"2 clients: it has none, its users are": func(c *check.Config) { c.Clients = 2 },
		"3 numbers of entries":                  func(c *check.Config) { c.Entries = []int{1, 2, 3} },
		"-2 entries":                            func(c *check.Config) { c.Entries = []int{-2} },
		"process 7 cannot be down":              func(c *check.Config) { c.Down = []protocol.ID{7} },
		"p2 cannot be down":                     func(c *check.Config) { c.Down = []protocol.ID{1} },
		`no option "x"`:                         func(c *check.Config) { c.Options = map[string]int64{"x": 1} },
		"amnesia=1: its model has no":           func(c *check.Config) { c.Amnesia = 1 },
		"crash=1: its model has no":             func(c *check.Config) { c.Crash = 1 },
		"suspect=1: its model has no":           func(c *check.Config) { c.Suspect = 1 },
		"cancel=1: its model has no":            func(c *check.Config) { c.Cancel = 1 },
		"amnesia=300: want 0 to 15":             func(c *check.Config) { c.Amnesia = 300 },
		"amnesia=-1: want 0 to 15":              func(c *check.Config) { c.Amnesia = check.Unlimited },
		"crash=-1: want 0 to 15":                func(c *check.Config) { c.Crash = check.Unlimited },
		"want no reductions": func(c *check.Config) {
			c.Swarm, c.Reduce = &check.Swarm{}, []string{check.ReduceOrder}
		},
		"a memory cap of 7 bytes":        func(c *check.Config) { c.MaxMemory = 7 },
		`unknown property "fun"`:         func(c *check.Config) { c.Properties = []string{"fun"} },
		`a check has no step "cut"`:      func(c *check.Config) { c.Prefix = []scenario.Step{{Verb: scenario.Cut}} },
		"no exit is possible here":       func(c *check.Config) { c.Prefix = []scenario.Step{{Verb: scenario.Exit}} },
		"possible are: try p1; try p2":   func(c *check.Config) { c.Prefix = []scenario.Step{{Verb: scenario.Try, Line: 3}} },
		`check: line 3: "try"`:           func(c *check.Config) { c.Prefix = []scenario.Step{{Verb: scenario.Try, Line: 3}} },
		"there is no process for it, or": func(c *check.Config) { c.Prefix = []scenario.Step{{Verb: scenario.Amnesia}} },
	} {
		c := config(2)
		change(&c)
		if _, err := check.Run(algorithm(peers, wait), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// An effect that no driver serves is a violation, not something to pass over.
func TestUnknownEffect(t *testing.T) {
	v := run(t, algorithm(peers, func(_ *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if ev.Kind == protocol.Try {
			out.Effects = append(out.Effects, protocol.Effect[uint8]{Act: protocol.Act{Do: 99}})
		}
	}), config(1))
	wants(t, v, check.Violated, check.Model, "try p1")
}

// A user is told rem once after each exit.
func TestRem(t *testing.T) {
	rems := func(n int) program {
		return func(_ *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
			switch ev.Kind {
			case protocol.Try:
				out.Crit(0)
			case protocol.Exit:
				for range n {
					out.Rem()
				}
			}
		}
	}
	wants(t, run(t, algorithm(peers, rems(0)), config(1)), check.Violated, check.Deadlock, "try p1", "exit p1")
	wants(t, run(t, algorithm(peers, rems(1)), config(1)), check.Holds, check.Exclusion)
	wants(t, run(t, algorithm(peers, rems(3)), config(1)), check.Violated, check.WellFormed, "try p1", "exit p1")
}

// A step that was cut excuses a stuck state only if it must happen: nobody has to
// try.
func TestCutTry(t *testing.T) {
	a := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if ev.Kind == protocol.Try && p.id == 0 {
			p.r[0] = 9
			out.Crit(0)
		}
	})
	a.Bounds = []protocol.Bound{protocol.NewBound("r", 1, func(p *toy) uint64 { return p.r[0] })}
	wants(t, run(t, a, config(2)), check.Violated, check.Deadlock, "try p2")
}

func TestNumbers(t *testing.T) {
	if got := environment.Numbers([]int{3, 0, check.Unlimited}); got != "3,0,unlimited" {
		t.Error(got)
	}
}
