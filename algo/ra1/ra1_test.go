package ra1

import (
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// one is for models in which each user wants one of these groups.
func one(groups ...protocol.Groups) [][]protocol.Groups { return [][]protocol.Groups{groups} }

var options = algotest.Options{
	Exhaustive: []check.Config{
		{Config: protocol.Config{N: 1}, Entries: []int{3}},
		{Config: protocol.Config{N: 2}, Entries: []int{check.Unlimited}, Wants: one("!w", "1", "2")},
		{Config: protocol.Config{N: 3}, Wants: [][]protocol.Groups{{"1"}, {"1", "2"}, {"!w", "1"}}},
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

// What every algorithm should have, starvation freedom and concurrent entry included, which
// are about infinite runs.
func TestModels(t *testing.T) {
	model := func(wants [][]protocol.Groups, entries ...int) check.Config {
		return check.Config{
			Config: protocol.Config{N: 3}, Entries: entries, Wants: wants, Properties: []string{"all"}, MaxMemory: 1 << 30,
		}
	}
	algotest.Holds(t, Algorithm,
		[]check.Config{model(one("1", "2"), 1)},
		[]check.Config{
			model(one("!w", "1", "2"), 1), model(one("1", "2", "3"), 1), model(one("1", "2"), 2, 1, 1),
			{Config: protocol.Config{N: 3}, Entries: []int{check.Unlimited}, Wants: one("!w", "1", "2"), MaxMemory: 1 << 30},
		})
}

// n-1 REQUESTs and n-1 REPLYs for an entry, at any load and whatever the groups. Mittal and
// Mohan 2007, section 1.1.
func TestMessages(t *testing.T) {
	for _, groups := range []int{1, 2, 20} {
		for _, think := range []sim.Dist{sim.Constant(0), sim.Exponential(10 * time.Millisecond)} {
			algotest.OfEachKind(t, Algorithm, sim.Config{Groups: groups, Think: think})
		}
	}
}

// All n processes are inside at once where they want one group. Under load with many groups
// next to nobody shares: requests of one group are apart by those of others.
func TestConcurrency(t *testing.T) {
	const n = 20
	run := func(groups int) sim.Result {
		r, err := sim.Run(Algorithm, sim.Config{
			Config: protocol.Config{N: n}, Entries: []int{20}, Groups: groups,
			Think: sim.Constant(0), Delay: sim.Exponential(time.Millisecond), Hold: sim.Constant(100 * time.Millisecond),
		})
		if err != nil || r.ViolationCount != 0 {
			t.Fatal(err, r.Violations)
		}
		return r
	}
	if r := run(1); r.Concurrency.Max != n {
		t.Errorf("at most %d are inside together, who all want one group; want %d", r.Concurrency.Max, n)
	}
	if r := run(10); r.Concurrency.Mean > 1.3 {
		t.Errorf("with 10 groups %.2f are inside, want next to 1", r.Concurrency.Mean)
	}
}

func try(s *algotest.System[ricartagrawala.Message], id protocol.ID, wants string) {
	s.Step(id, protocol.Input{Kind: protocol.Try, Data: wants})
}

// A process that is inside answers those at once who want the same group, and the others on exit; who
// has an exclusive group shares with nobody, not even with its like.
func TestReplies(t *testing.T) {
	for _, c := range []struct {
		inside, wanted string
		replies        int
	}{
		{"a", "a", 1}, {"a", "b", 0}, {"!a", "!a", 0}, {"!a", "a", 0}, {"", "", 0},
	} {
		s := algotest.NewSystem(Algorithm, protocol.Config{N: 2}, 0)
		try(s, 0, c.inside)
		s.Settle()
		try(s, 1, c.wanted)
		s.Deliver(1, 0, 0)
		if got := len(s.InFlight(0, 1)); got != c.replies {
			t.Errorf("%d REPLYs from inside %q to who wants %q, want %d", got, c.inside, c.wanted, c.replies)
		}
		s.Exit(0)
		s.Settle()
		if got := s.Inside(); !slices.Equal(got, []protocol.ID{1}) {
			t.Errorf("%q after %q: inside is %v, want 1", c.wanted, c.inside, got)
		}
	}
}

// Why so few share: 2 wants what 0 has, but also 1's permission, which waits for another
// group with an earlier timestamp.
func TestSeparated(t *testing.T) {
	s := algotest.NewSystem(Algorithm, protocol.Config{N: 3}, 0)
	for id, wants := range []string{"a", "b", "a"} {
		try(s, protocol.ID(id), wants)
		s.Settle()
	}
	for _, id := range []protocol.ID{0, 1, 2} {
		if got := s.Inside(); !slices.Equal(got, []protocol.ID{id}) {
			t.Fatalf("inside is %v, want %d", got, id)
		}
		s.Exit(id)
		s.Settle()
	}
}
