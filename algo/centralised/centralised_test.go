package centralised

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
		{Config: protocol.Config{N: 3}, Entries: []int{check.Unlimited}},
		{Config: protocol.Config{N: 4}, Entries: []int{check.Unlimited}},
	},
}

func TestConformance(t *testing.T)       { algotest.Run(t, Algorithm, options) }
func TestConformanceDenied(t *testing.T) { algotest.Run(t, WithDenied, options) }
func FuzzRead(f *testing.F)              { algotest.FuzzRead(f, WithDenied, options) }
func FuzzLoadState(f *testing.F)         { algotest.FuzzLoadState(f, Algorithm, options) }

// Runs with contention, event by event.
func TestGolden(t *testing.T) {
	for name, a := range map[string]protocol.Algorithm[Message]{"run": Algorithm, "denied": WithDenied} {
		algotest.Golden(t, a, name, sim.Config{
			Config: protocol.Config{N: 3}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond),
		})
	}
}

// Three messages to enter and leave, two of them to enter; DENIED is a fourth; the
// coordinator needs none. The lecture, centralised algorithm.
func TestMessages(t *testing.T) {
	for _, c := range []struct {
		a    protocol.Algorithm[Message]
		wait int // messages of an entry that has to wait
	}{{Algorithm, 3}, {WithDenied, 4}} {
		s := algotest.NewSystem(c.a, protocol.Config{N: 4}, 0)
		sent := func(what string, want int, f func()) {
			t.Helper()
			before := s.Sent
			f()
			s.Settle()
			if got := s.Sent - before; got != want {
				t.Errorf("%q: %s took %d messages, want %d", c.a.Variant, what, got, want)
			}
		}
		sent("to enter", 2, func() { s.Try(0) })
		sent("a request that waits", c.wait-2, func() { s.Try(1) })
		sent("to leave, and to let the next one in", 2, func() { s.Exit(0) })
		sent("to leave", 1, func() { s.Exit(1) })
		sent("an entry of the coordinator", 0, func() { s.Try(3); s.Exit(3) })
	}
}

// Nobody starves, and somebody always enters: the lecture, centralised algorithm, properties.
func TestLiveness(t *testing.T) {
	for _, a := range []protocol.Algorithm[Message]{Algorithm, WithDenied} {
		holds(t, a, check.Config{
			Config: protocol.Config{N: 3}, Entries: []int{check.Unlimited}, Properties: []string{"all"}, MaxMemory: 64 << 20,
		})
	}
}

func holds[M any](t *testing.T, a protocol.Algorithm[M], c check.Config) {
	t.Helper()
	if v, err := check.Run(a, c); err != nil || v.Verdict != check.Holds {
		t.Errorf("%q: %s is %s (%s): %v", a.Variant, v.Property, v.Verdict, v.Bounds, err)
	}
}

// Requests are served in the order in which they arrive at the coordinator, not in that in
// which they were sent. The lecture, centralised algorithm, ordering.
func TestArrival(t *testing.T) {
	if fault := arrival(); fault != "" {
		t.Error(fault)
	}
}

func arrival() string {
	s := algotest.NewSystem(Algorithm, protocol.Config{N: 4}, 0)
	for _, id := range []protocol.ID{0, 1, 2} {
		s.Try(id)
	}
	for _, id := range []protocol.ID{1, 2, 0} {
		s.Deliver(id, 3, 0)
	}
	s.Settle()
	for _, id := range []protocol.ID{1, 2, 0} {
		if got := s.Inside(); !slices.Equal(got, []protocol.ID{id}) {
			return "arrival by story, another one is inside"
		}
		s.Exit(id)
		s.Settle()
	}
	return ""
}

// ENTER may overtake the RELEASED that its sender sent before: it waits for it, and is
// served.
func TestOvertakenRelease(t *testing.T) {
	s := algotest.NewSystem(Algorithm, protocol.Config{N: 2}, 0)
	s.Try(0)
	s.Settle()
	s.Exit(0)
	s.Try(0)
	s.Deliver(0, 1, 1)
	if got := s.InFlight(1, 0); len(got) != 0 {
		t.Fatalf("the coordinator sends %v while it takes its receiver for inside", got)
	}
	s.Settle()
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{0}) {
		t.Fatalf("inside is %v, want 0", got)
	}
}

// refuses: the last of these messages, which process id of two gets, after a try
// or without, panics, because the model excludes it.
func refuses(id protocol.ID, try bool, kinds ...uint8) mutant.Check {
	return mutant.Panics("centralised: ", func() {
		p := Algorithm.New(id, protocol.Config{N: 2})
		var out protocol.Out[Message]
		if try {
			p.Step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Try}}, &out)
		}
		for _, kind := range kinds {
			p.Step(protocol.Event[Message]{
				Input: protocol.Input{Kind: protocol.Receive, From: 1 - id}, Msg: Message{kind},
			}, &out)
		}
	})
}

func TestMutants(t *testing.T) {
	model := func(a protocol.Algorithm[Message]) mutant.Check {
		return mutant.Decided(a, check.Config{
			Config: protocol.Config{N: 3}, Entries: []int{check.Unlimited}, MaxMemory: 16 << 20,
		})
	}
	examine := func(a protocol.Algorithm[Message]) mutant.Check {
		return algotest.Examine(a, algotest.Options{Sizes: []int{3}, Skip: map[string]string{
			"Exhaustive": "done above", "Allocations": "cannot fail by a wrong step",
		}})
	}
	// Every mutant is caught, so that there is no list of survivors.
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			model(Algorithm),
			model(WithDenied),
			func() (string, error) { return arrival(), nil },
			mutant.Model(causal.Of(Algorithm), order(1)),
			refuses(0, false, Granted),
			refuses(0, true, Denied),
			refuses(0, true, Granted, Granted),
			refuses(1, false, Granted),
			refuses(1, false, Released),
			refuses(1, true, Released),
			examine(Algorithm),
			examine(WithDenied),
			func() (string, error) {
				if _, _, err := Algorithm.Read([]byte{Denied}); err == nil {
					return "codec by story, the default form reads a DENIED", nil
				}
				return "", nil
			},
			mutant.Reduced(WithDenied, check.Config{
				Config: protocol.Config{N: 3}, Entries: []int{2}, Reduce: []string{check.ReduceOrder},
			}, 2688),
		},
		Outside: map[string]string{
			"Heir": "TestSuccessorMutants",
		},
		Replace: []mutant.Replacement{
			mutant.Edit("exit releases nothing", "p.ask(Released, out)", ""),
			mutant.Edit("grant forgets who is inside", "p.busy, p.holder = true, to", ""),
			mutant.Edit("onReleased keeps the holder", "p.busy, p.holder = false, 0", ""),
			mutant.Edit("onReleased keeps the head of the queue", "p.queue = append(p.queue[:0], p.queue[1:]...)", ""),
			mutant.Edit("onReleased serves the last one", "next := protocol.ID(p.queue[0])", "next := protocol.ID(p.queue[len(p.queue)-1])"),
			mutant.Edit("onEnter forgets who waits", "p.queue = append(p.queue, uint64(from))", ""),
			mutant.Edit("entering does not end the wait", "p.trying = false", ""),
		},
	})
}
