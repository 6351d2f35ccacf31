package carvalhoroucairol

import (
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

var options = algotest.Options{
	Exhaustive: []check.Config{
		{Config: protocol.Config{N: 1}, Entries: []int{3}},
		{Config: protocol.Config{N: 2}, Entries: []int{check.Unlimited}},
		{Config: protocol.Config{N: 3}, Entries: []int{check.Unlimited}},
		{Config: protocol.Config{N: 3}, Entries: []int{check.Unlimited}, FIFO: true},
	},
}

func TestConformance(t *testing.T) { algotest.Run(t, Algorithm, options) }
func FuzzRead(f *testing.F)        { algotest.FuzzRead(f, Algorithm, options) }
func FuzzLoadState(f *testing.F)   { algotest.FuzzLoadState(f, Algorithm, options) }

// A run with contention, event by event.
func TestGolden(t *testing.T) {
	algotest.Golden(t, Algorithm, "run", sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond),
	})
}

func system(n int) *algotest.System[Message] {
	return algotest.NewSystem(Algorithm, protocol.Config{N: n}, 0)
}

// A process asks those only who have asked it since: from no message to 2(n-1) an entry.
// Carvalho & Roucairol 1983.
func TestKeeper(t *testing.T) {
	const n = 10
	s := system(n)
	for _, c := range []struct {
		id   protocol.ID
		want int
	}{
		{0, 2 * (n - 1)},
		{0, 0},
		{0, 0},
		{1, 2 * (n - 1)}, // it has nobody's permission yet
		{0, 2},           // only 1 has asked since
		{1, 2},
		{2, 2 * (n - 1)},
		{0, 4},
	} {
		before := s.Sent
		s.Try(c.id)
		s.Settle()
		if got := s.Inside(); !slices.Equal(got, []protocol.ID{c.id}) {
			t.Fatalf("inside is %v, want %d", got, c.id)
		}
		s.Exit(c.id)
		s.Settle()
		if got := s.Sent - before; got != c.want {
			t.Errorf("an entry of %d took %d messages, want %d", c.id, got, c.want)
		}
	}
}

// Where the next one is drawn evenly, each other process has asked since with probability
// 1/2: n-1 messages an entry on average.
func TestMean(t *testing.T) {
	const n = 10
	r, err := sim.Run(Algorithm, sim.Config{
		Config: protocol.Config{N: n}, Entries: []int{1000}, Think: sim.Exponential(10 * time.Second),
	})
	if err != nil || r.ViolationCount != 0 {
		t.Fatal(err, r.Violations)
	}
	const slack = 0.02
	if got := r.MessagesPerEntry; got < (1-slack)*(n-1) || got > (1+slack)*(n-1) {
		t.Errorf("%g messages an entry, want about %d", got, n-1)
	}
}

// Nor does it take more than 2(n-1) when requests cross: who gives a permission back asks
// for it again, but once only, since what the other one asks next is later.
func TestMost(t *testing.T) {
	const n = 10
	for _, think := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
		r, err := sim.Run(Algorithm, sim.Config{
			Config: protocol.Config{N: n}, Entries: []int{100},
			Delay: sim.Exponential(time.Millisecond), Think: sim.Exponential(think),
		})
		if err != nil || r.ViolationCount != 0 {
			t.Fatal(err, r.Violations)
		}
		if got := r.MessagesPerEntry; got > 2*(n-1) {
			t.Errorf("think %v: %g messages an entry, want at most %d", think, got, 2*(n-1))
		}
	}
}

// A process that waits, and has the permission of a process with an earlier request, gives it back and
// asks for it again. Carvalho & Roucairol 1983.
func TestAgain(t *testing.T) {
	s := system(3)
	s.Try(1)
	s.Settle()
	s.Exit(1) // 1 keeps the permissions of 0 and 2
	s.Try(2)
	s.Deliver(2, 1, 0)
	s.Deliver(1, 2, 0)
	s.Try(0) // with timestamp 2, before it hears of 2
	s.Try(1) // with 3
	s.Deliver(0, 1, 0)
	got := s.InFlight(1, 0)
	if len(got) != 2 || got[0].Kind != Reply || got[1].Kind != Request {
		t.Fatalf("1 answers an earlier request of whom it has the permission with %v, want REPLY and REQUEST", got)
	}
	s.Deliver(1, 0, 1) // REQUEST overtakes REPLY, and is deferred
	if got := s.InFlight(0, 1); len(got) != 0 {
		t.Fatalf("0 answers a later request: %v", got)
	}
}

// REPLY may overtake a REQUEST that its sender has made before: it then waits for the next
// time.
func TestOvertakenRequest(t *testing.T) {
	s := system(2)
	s.Try(0)
	s.Try(1)
	s.Deliver(0, 1, 0)
	s.Deliver(1, 0, 1)
	s.Exit(0)
	s.Try(0)
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{0}) {
		t.Fatalf("inside is %v, want 0, who keeps the permission", got)
	}
	s.Deliver(1, 0, 0)
	s.Exit(0)
	s.Settle()
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{1}) {
		t.Fatalf("inside is %v, want 1", got)
	}
}

// A process that keeps permissions enters again without a word, before one whose request
// happened before: on its way is a REQUEST that the keeper has not seen. FIFO channels make
// that longer, but do not mend it.
func TestOrder(t *testing.T) {
	for fifo, want := range map[bool][]string{
		false: {
			"try p1", "try p2", "deliver p1 p2 REQUEST(1)", "deliver p1 p3 REQUEST(1)", "deliver p2 p1 REPLY",
			"deliver p3 p1 REPLY", "exit p1", "try p1",
		},
		true: {
			"try p1", "deliver p1 p2 REQUEST(1)", "try p2", "deliver p2 p1 REPLY", "deliver p2 p3 REQUEST(2)",
			"deliver p1 p3 REQUEST(1)", "deliver p3 p1 REPLY", "exit p1", "try p1",
		},
	} {
		v, err := check.Run(causal.Of(Algorithm), check.Config{
			Config: protocol.Config{N: 3}, Entries: []int{2, 1, 0}, Properties: []string{causal.Order}, FIFO: fifo,
		})
		if err != nil || v.Property != causal.Order || !slices.Equal(v.Trace, want) {
			t.Errorf("FIFO channels %v: %s is %s (%s), %v, after %q, want %q", fifo, v.Property, v.Verdict, v.Bounds, err, v.Trace, want)
		}
	}
}

// Nobody starves, though nobody has to ask again: a REQUEST arrives at last, and what
// the other one asks next is later.
func TestLiveness(t *testing.T) {
	for _, entries := range [][]int{
		{check.Unlimited, check.Unlimited},
		{check.Unlimited, 1, 1},
		{2, 2, 2},
	} {
		v, err := check.Run(Algorithm, check.Config{
			Config: protocol.Config{N: len(entries)}, Entries: entries, Properties: []string{"all"}, MaxMemory: 64 << 20,
		})
		if err != nil || v.Verdict != check.Holds {
			t.Errorf("%v: %s is %s (%s): %v", entries, v.Property, v.Verdict, v.Bounds, err)
		}
	}
}

func TestMutants(t *testing.T) {
	model := func(n int, entries ...int) mutant.Check {
		return mutant.Decided(Algorithm, check.Config{
			Config: protocol.Config{N: n}, Entries: entries, MaxMemory: 16 << 20,
			NoShift: true, // so that a property is violated, and not the claim about counters
		})
	}
	replies := func(n int, try bool) func() {
		return func() {
			p := Algorithm.New(0, protocol.Config{N: 3})
			var out protocol.Out[Message]
			if try {
				p.Step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Try}}, &out)
			}
			for range n {
				p.Step(protocol.Event[Message]{
					Input: protocol.Input{Kind: protocol.Receive, From: 1}, Msg: Message{Kind: Reply},
				}, &out)
			}
		}
	}
	// Every mutant is caught, so that there is no list of survivors.
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			model(1, 2),
			model(2, 2),
			model(3, 2, 1, 1),
			mutant.Model(Algorithm, check.Config{
				Config: protocol.Config{N: 3}, Entries: []int{2}, MaxMemory: 16 << 20, Properties: []string{"all"},
			}),
			mutant.Panics("carvalhoroucairol: ", replies(1, false)),
			mutant.Panics("carvalhoroucairol: ", replies(2, true)),
			algotest.Examine(Algorithm, algotest.Options{Skip: map[string]string{
				"Exhaustive": "done above", "Allocations": "cannot fail by a wrong step",
			}}),
		},
		Outside: map[string]string{"onePermission": "a property, not the machine"},
		Replace: []mutant.Replacement{
			mutant.Edit("onRequest does not merge the clock", "p.clock = max(p.clock, t)", ""),
			mutant.Edit("onRequest takes over any clock", "p.clock = max(p.clock, t)", "p.clock = t"),
			mutant.Edit("try does not advance the clock", "p.clock++", ""),
			mutant.Edit("onRequest does not ask again", "out.Send(from, Message{Request, p.request})", ""),
			mutant.Edit("onRequest forgets whom it defers", "p.deferred.Add(from)", ""),
			mutant.Edit("reply keeps the permission", "p.permits.Remove(to)", ""),
			mutant.Edit("onReply does not note the permission", "p.permits.Add(from)", ""),
			mutant.Edit("enter keeps the request", "p.request, p.inside = 0, true", "p.inside = true"),
			mutant.Edit("enter does not defer", "p.request, p.inside = 0, true", "p.request = 0"),
			mutant.Edit("exit stays inside", "p.inside = false", ""),
			mutant.Edit("exit answers again and again", "p.deferred.Clear()", ""),
			mutant.Edit("permitted by all but one", "p.permits.Len() == p.n-1", "p.permits.Len() >= p.n-2"),
		},
	})
}
