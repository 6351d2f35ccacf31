package suzukikasami

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
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
	Allocations: 0.01, // each TOKEN is a vector, cut from blocks
	Exhaustive: []check.Config{
		{Config: protocol.Config{N: 1}, Entries: []int{3}},
		{Config: protocol.Config{N: 2}, Entries: []int{check.Unlimited}},
		{Config: protocol.Config{N: 3}, Entries: []int{2}},
	},
}

func TestConformance(t *testing.T) { algotest.Run(t, Algorithm, options) }
func TestConformanceRicartAgrawala(t *testing.T) {
	algotest.Run(t, RicartAgrawala, options)
}
func FuzzRead(f *testing.F)      { algotest.FuzzRead(f, Algorithm, options) }
func FuzzLoadState(f *testing.F) { algotest.FuzzLoadState(f, Algorithm, options) }

var forms = []protocol.Algorithm[Message]{Algorithm, RicartAgrawala}

// A run with contention of each form, event by event.
func TestGolden(t *testing.T) {
	for k, name := range []string{"run", "ricart-agrawala-token"} {
		t.Run(name, func(t *testing.T) {
			algotest.Golden(t, forms[k], name, sim.Config{
				Config: protocol.Config{N: 3}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond),
			})
		})
	}
}

func system(a protocol.Algorithm[Message], n int) *algotest.System[Message] {
	return algotest.NewSystem(a, protocol.Config{N: n}, 0)
}

// A process that holds the token enters without any message, and again; another
// one costs n messages. Suzuki & Kasami 1985, section 2; Ricart & Agrawala 1983.
func TestMessages(t *testing.T) {
	const n = 10
	for _, a := range forms {
		s := system(a, n)
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
				t.Errorf("%q: the entry of %d took %d messages, want %d", a.Variant, id, got, want)
			}
		}
		enter(n-1, 0)
		enter(n-1, 0)
		enter(3, n)
		enter(3, 0)
		enter(3, 0)
		enter(0, n)
	}
}

// Whoever comes last holds the token first, so that at low load every entry costs
// n messages, the first ones too; under load exactly one entry of the run is free.
func TestMessagesPerEntry(t *testing.T) {
	const n, entries = 10, 100
	for _, a := range forms {
		for _, x := range []struct {
			think time.Duration
			free  int
		}{{time.Second, 0}, {0, 1}} {
			r, err := sim.Run(a, sim.Config{
				Config:  protocol.Config{N: n},
				Entries: []int{entries},
				Think:   sim.Constant(x.think),
				Hold:    sim.Constant(time.Millisecond),
			})
			if err != nil || r.ViolationCount != 0 {
				t.Fatal(err, r.Violations)
			}
			if want := n * (n*entries - x.free); int(r.Messages) != want {
				t.Errorf("%q, think %v: %d messages, want %d", a.Variant, x.think, r.Messages, want)
			}
		}
	}
}

func TestService(t *testing.T) {
	if fault := service(); fault != "" {
		t.Error(fault)
	}
}

// service: the token serves those who wait in the order of its queue, and those whom an
// exit finds waiting from the leaver's neighbour on; without a queue only the latter, so
// that 0, who comes after 1, is served before.
func service() string {
	for _, x := range []struct {
		form  protocol.Algorithm[Message]
		order []protocol.ID
	}{
		{Algorithm, []protocol.ID{2, 4, 1, 0}},
		{RicartAgrawala, []protocol.ID{2, 4, 0, 1}},
	} {
		s := system(x.form, 5)
		s.Try(2)
		s.Settle()
		for _, id := range []protocol.ID{1, 4} {
			s.Try(id)
			s.Settle()
		}
		for i, id := range x.order {
			if got := s.Inside(); !slices.Equal(got, []protocol.ID{id}) {
				return fmt.Sprintf("service by story, %q: entry %d is of %v, want %d", x.form.Variant, i, got, id)
			}
			if id == 4 {
				s.Try(0)
				s.Settle()
			}
			s.Exit(id)
			s.Settle()
		}
	}
	return ""
}

// Tries are not served in the order in which they happened before one another: p2, who
// knows that p1 tries, tries afterwards, and its request is the first to reach the token.
func TestOrder(t *testing.T) {
	for k, token := range []string{"TOKEN([0,0,0],[],0)", "TOKEN([0,0,0],0)"} {
		v, err := check.Run(causal.Of(forms[k]), check.Config{
			Config: protocol.Config{N: 3}, Properties: []string{causal.Order},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"try p1", "deliver p1 p2 REQUEST(1)", "try p2", "deliver p2 p3 REQUEST(1)", "deliver p3 p2 " + token,
		}
		if v.Verdict != check.Violated || !slices.Equal(v.Trace, want) {
			t.Errorf("%q: %s, %s", forms[k].Variant, v.Verdict, strings.Join(v.Trace, ", "))
		}
	}
}

// Nobody starves, whether a queue remembers who waits or the ring does. TestMutants shows
// that a ring which always begins at the same place would starve the last one.
func TestStarvation(t *testing.T) {
	for _, a := range forms {
		v, err := check.Run(a, check.Config{
			Config: protocol.Config{N: 2}, Entries: []int{check.Unlimited}, Properties: []string{check.Starvation},
		})
		if err != nil || v.Verdict != check.Holds {
			t.Errorf("%q: %s, %v %s", a.Variant, v.Verdict, err, v.Bounds)
		}
	}
}

// A request that was overtaken by the token, and by a later request of the same
// process, is not served again.
func TestOldRequests(t *testing.T) {
	s := system(Algorithm, 3)
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
		"REQUEST(7)":            {Kind: Request, Number: 7},
		"TOKEN([1,0,2],[#0],4)": {Kind: Token, LN: []uint64{1, 0, 2}, Q: []uint64{0}, Fence: 4},
		"TOKEN([1,0,20],[],0)":  {Kind: Token, LN: []uint64{1, 0, 20}},
	} {
		if got := Algorithm.Text(m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := RicartAgrawala.Text(Message{Kind: Token, LN: []uint64{1, 0}}); got != "TOKEN([1,0],0)" {
		t.Errorf("got %q", got)
	}
}

func TestMutants(t *testing.T) {
	model := func(a protocol.Algorithm[Message], n int, entries ...int) mutant.Check {
		return mutant.Model(a, check.Config{
			Config: protocol.Config{N: n}, Entries: entries, MaxMemory: 256 << 20,
			NoShift: true, // so that a property is violated, and not the claim about counters
		})
	}
	receive := func(try bool, token ...uint64) func() {
		return func() {
			s := system(Algorithm, 2)
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
		Checks: []mutant.Check{
			model(Algorithm, 2, 2),
			model(algotest.Fenced(Algorithm), 2, 2),
			model(Algorithm, 3, 1),
			model(Algorithm, 3, 2, 1, 1),
			model(RicartAgrawala, 3, 1),
			mutant.Model(RicartAgrawala, check.Config{
				Config: protocol.Config{N: 3}, Entries: []int{check.Unlimited, check.Unlimited, 1}, FIFO: true,
				Properties: []string{check.Starvation},
			}),
			mutant.Panics("suzukikasami: ", receive(false, 0, 0)),
			mutant.Panics("suzukikasami: ", receive(true, 0)),
			func() (string, error) { return service(), nil },
			// What only the memory of a process shows, not its encoding.
			algotest.Examine(Algorithm, algotest.Options{Skip: map[string]string{
				"Exhaustive": "done above", "Allocations": "cannot fail by a wrong step", "Events": "done above",
			}}),
			mutant.Reduced(Algorithm, check.Config{
				Config: protocol.Config{N: 3}, Entries: []int{2, 1, 1}, Reduce: []string{check.ReduceOrder},
			}, 1472),
		},
		Replace: []mutant.Replacement{
			mutant.Edit("onRequest believes an old number", "p.rn[j] = max(p.rn[j], number)", "p.rn[j] = number"),
			mutant.Edit("try repeats its number", "p.rn[p.id]++", ""),
			mutant.Edit("onToken does not take the numbers", "copy(p.ln, t.LN)", ""),
			mutant.Edit("onToken keeps the memory of the message", "copy(p.ln, t.LN)", "p.ln = t.LN"),
			mutant.Edit("onToken forgets the queue", "p.queue = append(p.queue, t.Q...)", ""),
			mutant.Edit("exit does not record its request", "p.ln[p.id] = p.rn[p.id]", ""),
			mutant.Edit("exit keeps the head of the queue", "p.queue = append(p.queue[:0], p.queue[1:]...)", ""),
			mutant.Edit("exit serves the last one", "next := protocol.ID(p.queue[0])", "next := protocol.ID(p.queue[len(p.queue)-1])"),
			mutant.Edit("enqueue forgets who is queued", "p.queued.Add(protocol.ID(j))", "_ = j"),
			mutant.Edit("enqueue remembers for ever who was queued", "p.queued.Clear()", ""),
			mutant.Edit("after begins at one place for all", "return (p.id + protocol.ID(k)) % protocol.ID(p.n)",
				"if protocol.ID(k) <= p.id { k-- }; return protocol.ID(k)"),
			mutant.Edit("after overlooks the neighbour", "p.id + protocol.ID(k)", "p.id + protocol.ID(k+1)"),
			mutant.Edit("pass keeps the token", "p.token = false", ""),
			mutant.Edit("an entry is not counted", "p.fence++", ""),
			mutant.Edit("onToken does not take how many entries there were", "p.fence = t.Fence", ""),
			mutant.Edit("pass does not tell how many entries there were", "Q: t[p.n:], Fence: p.fence}", "Q: t[p.n:]}"),
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
