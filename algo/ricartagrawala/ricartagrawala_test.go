package ricartagrawala

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
	},
}

func printedOptions() algotest.Options {
	o := options
	o.Lacking = []check.Config{{Config: protocol.Config{N: 3}, Entries: []int{2, 1, 0}}}
	return o
}

func TestConformance(t *testing.T)        { algotest.Run(t, Algorithm, options) }
func TestConformancePrinted(t *testing.T) { algotest.Run(t, Printed, printedOptions()) }
func FuzzRead(f *testing.F)               { algotest.FuzzRead(f, Algorithm, options) }
func FuzzLoadState(f *testing.F)          { algotest.FuzzLoadState(f, Algorithm, options) }

// A run with contention, event by event.
func TestGolden(t *testing.T) {
	algotest.Golden(t, Algorithm, "run", sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond),
	})
}

// n-1 REQUESTs and n-1 REPLYs for an entry. Ricart & Agrawala 1981, message traffic; the lecture,
// Ricart and Agrawala's algorithm, pros.
func TestMessages(t *testing.T) {
	algotest.OfEachKind(t, Algorithm, sim.Config{Think: sim.Exponential(10 * time.Millisecond)})
}

// A REQUEST is answered at once by who neither is inside nor wants to be, and by who wants
// to be with a later pair of timestamp and id; the others queue it, and answer on exit. The
// lecture, Ricart and Agrawala's algorithm.
func TestReplies(t *testing.T) {
	s := algotest.NewSystem(Algorithm, protocol.Config{N: 4}, 0)
	s.Try(1)
	s.Settle()
	s.Try(2) // 1 is inside; with timestamp 2
	s.Deliver(2, 1, 0)
	s.Try(0) // with timestamp 2, too
	s.Deliver(0, 2, 0)
	s.Deliver(2, 0, 0)
	s.Deliver(2, 3, 0)
	for _, c := range []struct {
		from protocol.ID
		want int
		why  string
	}{
		{1, 0, "is inside"},
		{0, 0, "has the same timestamp, and the smaller id"},
		{3, 1, "does not want to enter"},
	} {
		if got := len(s.InFlight(c.from, 2)); got != c.want {
			t.Errorf("%d REPLYs to 2 from %d, who %s, want %d", got, c.from, c.why, c.want)
		}
	}
	if got := len(s.InFlight(2, 0)); got != 1 {
		t.Errorf("%d REPLYs from 2 to 0, who comes first, want 1", got)
	}
	s.Exit(1)
	if got := len(s.InFlight(1, 2)); got != 1 {
		t.Errorf("%d REPLYs from 1 to 2 after its exit, want 1", got)
	}
}

// Nobody starves, and somebody always enters. Ricart & Agrawala 1981, assertions.
func TestLiveness(t *testing.T) {
	for _, a := range []protocol.Algorithm[Message]{Algorithm, Printed} {
		v, err := check.Run(a, check.Config{
			Config: protocol.Config{N: 3}, Entries: []int{check.Unlimited}, Properties: []string{"all"}, MaxMemory: 64 << 20,
		})
		if err != nil || v.Verdict != check.Holds {
			t.Errorf("%q: %s is %s (%s): %v", a.Variant, v.Property, v.Verdict, v.Bounds, err)
		}
	}
}

// The shortest way in which the printed form breaks the happened-before order, which FIFO
// channels make one step longer.
func TestPrintedOrder(t *testing.T) {
	for fifo, steps := range map[bool]int{false: 13, true: 14} {
		v, err := check.Run(causal.Of(Printed), check.Config{
			Config: protocol.Config{N: 3}, Entries: []int{2, 1, 0}, Properties: []string{causal.Order}, FIFO: fifo,
		})
		if err != nil || v.Verdict != check.Violated || v.Property != causal.Order || len(v.Trace) != steps {
			t.Errorf("FIFO channels %v: %s is %s (%s) after %d steps, %v, want %d",
				fifo, v.Property, v.Verdict, v.Bounds, len(v.Trace), err, steps)
		}
	}
}

// The order of entries is that of (timestamp, id) among those who wait together.
func TestOrder(t *testing.T) {
	for _, a := range []protocol.Algorithm[Message]{Algorithm, Printed} {
		s := algotest.NewSystem(a, protocol.Config{N: 4}, 0)
		// 3 requests with timestamp 1, and so does 1, which does not know of it yet.
		s.Try(3)
		s.Try(1)
		s.Deliver(3, 0, 0)
		s.Try(0) // with timestamp 2
		s.Settle()
		for _, id := range []protocol.ID{1, 3, 0} {
			if got := s.Inside(); !slices.Equal(got, []protocol.ID{id}) {
				t.Fatalf("%q: inside is %v, want %d", a.Variant, got, id)
			}
			s.Exit(id)
			s.Settle()
		}
	}
}

// The reason for the clock on REPLY: without it a request overtakes another one
// that happened before it.
func TestHappenedBefore(t *testing.T) {
	if overtakes(Algorithm) {
		t.Error("a request overtakes one that happened before")
	}
	if !overtakes(Printed) {
		t.Error("the printed form keeps the happened-before order: then why the clock on REPLY?")
	}
}

// overtakes tells this story: 0 requests, and 1 learns of it. Then 1 replies to
// 2, which enters, leaves and requests again, all after 0's request. Does 2 enter
// before 0? It can, because 0 had heard of a request of 3 that 2 has not.
func overtakes(a protocol.Algorithm[Message]) bool {
	s := algotest.NewSystem(a, protocol.Config{N: 4}, 0)
	s.Try(2) // timestamp 1
	s.Deliver(2, 0, 0)
	s.Deliver(2, 3, 0)
	s.Try(3) // 2
	s.Deliver(3, 0, 0)
	s.Try(0) // 3
	s.Deliver(0, 1, 0)
	s.Deliver(2, 1, 0)
	for _, id := range []protocol.ID{0, 1, 3} {
		m := s.InFlight(id, 2)
		s.Deliver(id, 2, slices.IndexFunc(m, func(m Message) bool { return m.Kind == Reply }))
	}
	s.Exit(2)
	s.Try(2) // 2 as printed, 4 with the clock on REPLY
	s.Settle()
	return s.Inside()[0] == 2
}

func TestText(t *testing.T) {
	groups := ForGroups(protocol.Info{})
	for want, m := range map[string]Message{
		"REQUEST(7,!w)": {Kind: Request, Time: 7, Group: "!w"}, "REPLY": {Kind: Reply},
	} {
		if got := groups.Text(m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestMutants(t *testing.T) {
	model := func(a protocol.Algorithm[Message], n, entries int) mutant.Check {
		return mutant.Model(a, check.Config{
			Config: protocol.Config{N: n}, Entries: []int{entries}, MaxMemory: 256 << 20,
		})
	}
	groups := ForGroups(protocol.Info{Name: "groups"})
	grouped := func(n int, wants [][]protocol.Groups, entries ...int) mutant.Check {
		return mutant.Model(groups, check.Config{
			Config: protocol.Config{N: n}, Entries: entries, Wants: wants, MaxMemory: 256 << 20,
			NoShift: true, // so that a property is violated, and not the claim about counters
		})
	}
	between := [][]protocol.Groups{{"1"}, {"1", "2"}, {"2"}}
	step := func(in protocol.Input, m Message) func() {
		return func() {
			p := groups.New(0, protocol.Config{N: 2})
			var out protocol.Out[Message]
			p.Step(protocol.Event[Message]{Input: in, Msg: m}, &out)
		}
	}
	// Every mutant is caught, so that there is no list of survivors.
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			model(Algorithm, 2, 2),
			model(Algorithm, 3, 1),
			mutant.Decided(Printed, check.Config{
				Config: protocol.Config{N: 3}, Entries: []int{check.Unlimited}, MaxMemory: 16 << 20,
			}),
			mutant.Model(causal.Of(Algorithm), check.Config{
				Config: protocol.Config{N: 3}, Entries: []int{2, 1, 0}, Properties: []string{causal.Order},
			}),
			func() (string, error) {
				if overtakes(Printed) {
					return "", nil
				}
				return "order by story, the printed form keeps it", nil
			},
			mutant.Panics("ricartagrawala: ", step(protocol.Input{Kind: protocol.Receive, From: 1}, Message{Kind: Reply})),
			mutant.Panics("ricartagrawala: ", step(protocol.Input{Kind: protocol.Try, Data: "a,b"}, Message{})),
			grouped(2, [][]protocol.Groups{{"!w", "1", "2"}}, 2),
			grouped(3, between, 1),
			mutant.Model(groups, check.Config{
				Config: protocol.Config{N: 2}, Wants: [][]protocol.Groups{{"1"}}, Properties: []string{check.ConcurrentEntry},
			}),
			mutant.Reduced(groups, check.Config{
				Config: protocol.Config{N: 3}, Wants: between, Reduce: []string{check.ReduceOrder},
			}, 3036),
			mutant.Reduced(Algorithm, check.Config{
				Config: protocol.Config{N: 3}, Reduce: []string{check.ReduceOrder},
			}, 1710),
		},
		Replace: []mutant.Replacement{
			mutant.Edit("Receive does not merge the clock", "p.clock = max(p.clock, ev.Msg.Time)", ""),
			mutant.Edit("Receive takes over any clock", "p.clock = max(p.clock, ev.Msg.Time)", "p.clock = ev.Msg.Time"),
			mutant.Edit("try does not advance the clock", "p.clock++", ""),
			mutant.Edit("try waits for one reply less", "uint64(p.n-1)", "uint64(max(p.n-2, 0))"),
			mutant.Edit("exit keeps the request", "p.section, p.request, p.group = protocol.InRem, 0", "p.section, p.group = protocol.InRem"),
			mutant.Edit("exit keeps the group", "p.section, p.request, p.group = protocol.InRem, 0, \"\"", "p.section, p.request = protocol.InRem, 0"),
			mutant.Edit("onRequest takes groups for equal that are exclusive", "p.group.Shares(m.Group)", "(p.group == m.Group)"),
			mutant.Edit("onRequest shares with nobody", "!p.group.Shares(m.Group)", "true"),
			mutant.Edit("exit answers again and again", "p.deferred.Clear()", ""),
			mutant.Edit("exit stays inside", "p.section, p.request, p.group = protocol.InRem, 0", "p.request, p.group = 0"),
			mutant.Edit("onReply does not count", "p.missing--", ""),
		},
	})
}
