package lamport

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
		{Config: protocol.Config{N: 3}, Entries: []int{1}},
	},
}

func TestConformance(t *testing.T) { algotest.Run(t, Algorithm, options) }
func FuzzRead(f *testing.F)        { algotest.FuzzRead(f, Algorithm, options) }
func FuzzLoadState(f *testing.F)   { algotest.FuzzLoadState(f, Algorithm, options) }
func system(n int) *algotest.System[Message] {
	return algotest.NewSystem(Algorithm, protocol.Config{N: n}, 0)
}

// Where messages happen to stay in order the variant is like the algorithm.
func TestConformanceUnordered(t *testing.T) {
	algotest.Run(t, Unordered, algotest.Options{
		Exhaustive: options.Exhaustive[:1],
		Lacking:    []check.Config{{Config: protocol.Config{N: 2}, Entries: []int{2}}},
	})
}

// A run with contention, event by event.
func TestGolden(t *testing.T) {
	algotest.Golden(t, Algorithm, "run", sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond),
	})
}

// n-1 messages of each kind. The lecture, Lamport's distributed algorithm, performance.
func TestMessages(t *testing.T) {
	algotest.OfEachKind(t, Algorithm, sim.Config{Think: sim.Exponential(10 * time.Millisecond)})
}

// Requests are served by their timestamps, and by their processes where those are equal.
// Lamport 1978, the relation => and rule 5.
func TestOrder(t *testing.T) {
	s := system(4)
	s.Try(3)
	s.Try(1) // does not know of it, and has the same time
	s.Deliver(3, 0, 0)
	s.Try(0)
	s.Settle()
	for _, id := range []protocol.ID{1, 3, 0} {
		if got := s.Inside(); !slices.Equal(got, []protocol.ID{id}) {
			t.Fatalf("inside is %v, want %d", got, id)
		}
		s.Exit(id)
		s.Settle()
	}
}

// Anything later will do, not only an ACK: two requests that cross let the first one in
// before either is acknowledged. Lamport 1978, rule 5(ii).
func TestCrossingRequests(t *testing.T) {
	if fault := crossing(); fault != "" {
		t.Error(fault)
	}
}

func crossing() string {
	s := system(2)
	s.Try(0)
	s.Try(1)
	s.Deliver(1, 0, 0)
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{0}) {
		return "rule 5 by story, a later request does not let the first one in"
	}
	s.Deliver(0, 1, 0)
	s.Deliver(0, 1, 0)
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{0}) {
		return "rule 5 by story, the second one enters too"
	}
	return ""
}

// Nobody starves. Lamport 1978, condition III.
func TestLiveness(t *testing.T) {
	v, err := check.Run(Algorithm, check.Config{
		Config: protocol.Config{N: 2}, Entries: []int{check.Unlimited}, Properties: []string{"all"}, MaxMemory: 64 << 20,
	})
	if err != nil || v.Verdict != check.Holds {
		t.Errorf("%s is %s (%s): %v", v.Property, v.Verdict, v.Bounds, err)
	}
}

// What FIFO channels are for, as shortest runs. An ACK that overtakes the REQUEST which its
// sender made before lets both in; a RELEASE that overtakes its REQUEST leaves the request
// in the queue for ever; and a request is overtaken by a later one. Lamport 1978 assumes
// such channels "for simplicity", and names numbers and acknowledgements as the way to make
// them.
func TestChannels(t *testing.T) {
	c := func(entries ...int) check.Config {
		return check.Config{Config: protocol.Config{N: len(entries)}, Entries: entries, MaxMemory: 64 << 20}
	}
	v, err := check.Run(Unordered, c(1, 1))
	shortest(t, v, err, check.Exclusion, 4)
	want := []string{"try p1", "try p2", "deliver p2 p1 REQUEST(1)", "deliver p1 p2 ACK(2)"}
	if !slices.Equal(v.Trace, want) {
		t.Errorf("%q, want %q", v.Trace, want)
	}
	for property, steps := range map[string]int{check.Deadlock: 13, causal.Order: 8} {
		c := c(2, 2)
		c.Properties = []string{property}
		if property == causal.Order {
			v, err = check.Run(causal.Of(Unordered), c)
		} else {
			v, err = check.Run(Unordered, c)
		}
		shortest(t, v, err, property, steps)
	}
}

func shortest(t *testing.T, v check.Verdict, err error, property string, steps int) {
	t.Helper()
	if err != nil || v.Verdict != check.Violated || v.Property != property || len(v.Trace) != steps {
		t.Errorf("%s is %s (%s) after %d steps, %v, want %s after %d:\n%q",
			v.Property, v.Verdict, v.Bounds, len(v.Trace), err, property, steps, v.Trace)
	}
}

func TestMutants(t *testing.T) {
	model := func(n, entries int) mutant.Check {
		return mutant.Decided(Algorithm, check.Config{
			Config: protocol.Config{N: n}, Entries: []int{entries}, MaxMemory: 64 << 20,
		})
	}
	// Every mutant is caught, so that there is no list of survivors.
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			model(1, 2),
			model(2, check.Unlimited),
			model(3, 1),
			mutant.Model(causal.Of(Algorithm), check.Config{
				Config: protocol.Config{N: 3}, Entries: []int{1}, Properties: []string{causal.Order}, MaxMemory: 64 << 20,
			}),
			func() (string, error) { return crossing(), nil },
			mutant.Model(Unordered, check.Config{
				Config: protocol.Config{N: 2}, Properties: []string{check.Model}, MaxMemory: 64 << 20,
			}),
			mutant.Reduced(Algorithm, check.Config{
				Config: protocol.Config{N: 2}, Entries: []int{check.Unlimited}, Reduce: []string{check.ReduceOrder},
			}, 164),
		},
		Outside: map[string]string{
			"Process.Waiting": "what drivers ask, not the machine",
			"order":           "multicast: TestMulticastMutants", "Replica": "the same",
		},
		Replace: []mutant.Replacement{
			mutant.Edit("receive does not merge the clock", "p.clock = max(p.clock, m.Time)", ""),
			mutant.Edit("receive takes over any clock", "p.clock = max(p.clock, m.Time)", "p.clock = m.Time"),
			mutant.Edit("the clock stands still", "p.clock++", ""),
			mutant.Edit("try does not queue its request", "p.insert(p.own)", ""),
			mutant.Edit("receive does not queue a request", "p.insert(protocol.Stamp{Time: m.Time, ID: from})", ""),
			mutant.Edit("receive does not acknowledge", "out.Send(from, Message{Ack, p.tick()})", ""),
			mutant.Edit("receive acknowledges with the time of the request", "Message{Ack, p.tick()}", "Message{Ack, m.Time}"),
			mutant.Edit("receive keeps a released request", "p.remove(from)", ""),
			mutant.Edit("exit keeps its request", "p.remove(p.id)", ""),
			mutant.Edit("exit tells nobody", "out.Broadcast(Message{Release, p.tick()})", ""),
			mutant.Edit("exit remembers its request", "p.section, p.own = protocol.InRem, protocol.Stamp{}", "p.section = protocol.InRem"),
			mutant.Edit("exit stays inside", "p.section, p.own = protocol.InRem, protocol.Stamp{}", "p.own = protocol.Stamp{}"),
			mutant.Edit("enterIfFirst does not enter", "p.section = protocol.InCrit", ""),
		},
	})
}
