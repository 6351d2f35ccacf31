package suzukikasami

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algotest"
	"github.com/poundlock/poundlock/algotest/mutant"
	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/sim"
)

var options = algotest.Options{
	Allocations: 0.01, // each TOKEN is a vector, cut from blocks
	Exhaustive: []check.Config{
		{Config: protocol.Config{N: 1}, Entries: []int{3}},
		{Config: protocol.Config{N: 2}, Entries: []int{check.Unlimited}},
		{Config: protocol.Config{N: 3}, Entries: []int{2}},
	},
}

func TestConformance(t *testing.T) { algotest.Run(t, Algorithm, options) }
func FuzzRead(f *testing.F)        { algotest.FuzzRead(f, Algorithm, options) }
func FuzzLoadState(f *testing.F)   { algotest.FuzzLoadState(f, Algorithm, options) }

func system(n int) *algotest.System[Message] {
	return algotest.NewSystem(Algorithm, protocol.Config{N: n}, 0)
}

// A process that holds the token enters without any message, and again; another
// one costs n messages. Suzuki & Kasami 1985, section 2.
func TestMessages(t *testing.T) {
	const n = 10
	s := system(n)
	enter := func(id protocol.ID, want int) {
		t.Helper()
		before := s.Sent
		s.Try(id)
		s.Settle()
		if got := s.Inside(); !slices.Equal(got, []protocol.ID{id}) {
			t.Fatalf("inside: %v, want %d", got, id)
		}
		s.Exit(id)
		s.Settle()
		if got := s.Sent - before; got != want {
			t.Errorf("the entry of %d took %d messages, want %d", id, got, want)
		}
	}
	enter(n-1, 0)
	enter(n-1, 0)
	enter(3, n)
	enter(3, 0)
	enter(3, 0)
	enter(0, n)
}

// Whoever comes last holds the token first, so that at low load every entry costs
// n messages, the first ones too; under load exactly one entry of the run is free.
func TestMessagesPerEntry(t *testing.T) {
	const n, entries = 10, 100
	for _, x := range []struct {
		think time.Duration
		free  int
	}{{time.Second, 0}, {0, 1}} {
		r, err := sim.Run(Algorithm, sim.Config{
			Config:  protocol.Config{N: n},
			Entries: []int{entries},
			Think:   sim.Constant(x.think),
			Hold:    sim.Constant(time.Millisecond),
		})
		if err != nil || r.ViolationCount != 0 {
			t.Fatal(err, r.Violations)
		}
		if want := n * (n*entries - x.free); int(r.Messages) != want {
			t.Errorf("think %v: %d messages, want %d", x.think, r.Messages, want)
		}
	}
}

func TestOrder(t *testing.T) {
	if fault := order(); fault != "" {
		t.Error(fault)
	}
}

// order: the token serves those who wait in the order of its queue, and those
// whom an exit finds waiting from the leaver's neighbour on.
func order() string {
	s := system(5)
	s.Try(2)
	s.Settle()
	for _, id := range []protocol.ID{1, 4} {
		s.Try(id)
		s.Settle()
	}
	for i, id := range []protocol.ID{2, 4, 1, 0} {
		if got := s.Inside(); !slices.Equal(got, []protocol.ID{id}) {
			return fmt.Sprintf("order by story, entry %d is of %v, want %d", i, got, id)
		}
		if id == 4 {
			s.Try(0) // comes after 1, who is queued, though the scan of 4 begins with 0
			s.Settle()
		}
		s.Exit(id)
		s.Settle()
	}
	return ""
}

// A request that was overtaken by the token, and by a later request of the same
// process, is not served again.
func TestOldRequests(t *testing.T) {
	s := system(3)
	s.Try(1) // its first request to 0 stays behind
	s.Deliver(1, 2, 0)
	s.Deliver(2, 1, 0)
	s.Try(0)
	s.Deliver(0, 1, 0)
	s.Exit(1)
	s.Deliver(1, 0, 1) // the token
	s.Exit(0)
	s.Deliver(1, 0, 0) // the old request
	if got := s.InFlight(0, 1); len(got) != 0 {
		t.Fatalf("the idle token follows an old request: %v", got)
	}
	s.Try(1)
	s.Deliver(1, 0, 0) // a new one
	if got := s.InFlight(0, 1); len(got) != 1 || got[0].Kind != Token {
		t.Fatalf("the idle token does not follow a new request: %v", got)
	}
}

// Every text of the catalogue in one place, so that traces can be read.
func TestText(t *testing.T) {
	for want, m := range map[string]Message{
		"REQUEST(7)":          {Kind: Request, Number: 7},
		"TOKEN([1,0,2],[#0])": {Kind: Token, LN: []uint64{1, 0, 2}, Q: []uint64{0}},
		"TOKEN([1,0,20],[])":  {Kind: Token, LN: []uint64{1, 0, 20}},
	} {
		if got := Algorithm.Text(m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestMutants(t *testing.T) {
	model := func(n int, entries ...int) mutant.Check {
		return mutant.Model(Algorithm, check.Config{
			Config: protocol.Config{N: n}, Entries: entries, MaxMemory: 256 << 20,
			NoShift: true, // so that a property is violated, and not the claim about counters
		})
	}
	receive := func(try bool, token ...uint64) func() {
		return func() {
			s := system(2)
			if try {
				s.Try(0)
			}
			var out protocol.Out[Message]
			s.Procs[0].Step(protocol.Event[Message]{
				Input: protocol.Input{Kind: protocol.Receive}, Msg: Message{Kind: Token, LN: token},
			}, &out)
		}
	}
	// Every mutant is caught, so that there is no list of survivors.
	mutant.Test(t, mutant.Config{
		Table: "testdata/mutants.txt",
		Checks: []mutant.Check{
			model(2, 2),
			model(3, 1),
			model(3, 2, 1, 1),
			mutant.Panics("suzukikasami: ", receive(false, 0, 0)),
			mutant.Panics("suzukikasami: ", receive(true, 0)),
			func() (string, error) { return order(), nil },
			// What only the memory of a process shows, not its encoding.
			algotest.Examine(Algorithm, algotest.Options{Skip: map[string]string{
				"Exhaustive": "done above", "Allocations": "cannot fail by a wrong step", "Events": "done above",
			}}),
			mutant.Reduced(Algorithm, check.Config{
				Config: protocol.Config{N: 3}, Entries: []int{2, 1, 1}, Reduce: []string{check.ReduceOrder},
			}, 1472),
		},
		Outside: map[string]string{"oneToken": "a property, not the machine"},
		Replace: []mutant.Replacement{
			mutant.Edit("onRequest believes an old number", "p.rn[j] = max(p.rn[j], number)", "p.rn[j] = number"),
			mutant.Edit("try repeats its number", "p.rn[p.id]++", ""),
			mutant.Edit("onToken does not take the numbers", "copy(p.ln, t.LN)", ""),
			mutant.Edit("onToken keeps the memory of the message", "copy(p.ln, t.LN)", "p.ln = t.LN"),
			mutant.Edit("onToken forgets the queue", "p.queue = append(p.queue, t.Q...)", ""),
			mutant.Edit("exit does not record its request", "p.ln[p.id] = p.rn[p.id]", ""),
			mutant.Edit("exit keeps the head of the queue", "p.queue = append(p.queue[:0], p.queue[1:]...)", ""),
			mutant.Edit("exit serves the last one", "next := protocol.ID(p.queue[0])", "next := protocol.ID(p.queue[len(p.queue)-1])"),
			mutant.Edit("exit overlooks its neighbour", "k := 1; k < p.n; k++", "k := 2; k < p.n; k++"),
			mutant.Edit("pass keeps the token", "p.token = false", ""),
			mutant.Edit("pass keeps the queue", "p.queue = p.queue[:0]", ""),
			mutant.Edit("pass sends its own memory", "copy(t, p.ln)", "t = p.ln"),
		},
	})
}

// BenchmarkStep measures a step under contention, the simulator included.
func BenchmarkStep(b *testing.B) {
	const n = 10
	const stepsAnEntry = n + 2 // the messages, try and exit
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := sim.Run(Algorithm, sim.Config{
		Config:  protocol.Config{N: n},
		Entries: []int{1 + b.N/(n*stepsAnEntry)},
		Think:   sim.Constant(0),
		Hold:    sim.Constant(time.Millisecond),
	})
	if err != nil {
		b.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	allocations := float64(after.Mallocs-before.Mallocs) / float64(r.Events)
	b.ReportMetric(allocations, "allocs/step")
	if r.Events > 100_000 && allocations > 0.01 {
		b.Errorf("%.4f allocations a step, want below 0.01", allocations)
	}
}
