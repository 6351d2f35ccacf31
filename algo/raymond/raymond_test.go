package raymond

import (
	"math"
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

func tall(n int, k int64) protocol.Config {
	return protocol.Config{N: n, Options: map[string]int64{"k": k}}
}

// within is a model of n processes with unlimited entries, k below each.
func within(n int, k int64) check.Config {
	return check.Config{Config: tall(n, k), Entries: []int{check.Unlimited}, Properties: []string{"all"}, MaxMemory: 256 << 20}
}

var small = algotest.Options{
	Exhaustive: []check.Config{within(1, 2), within(2, 2), within(3, 2), within(4, 2), within(5, 2)},
}

func TestConformance(t *testing.T) { algotest.Run(t, Algorithm, small) }
func FuzzRead(f *testing.F)        { algotest.FuzzRead(f, Algorithm, small) }
func FuzzLoadState(f *testing.F)   { algotest.FuzzLoadState(f, Algorithm, small) }

// A run with contention, event by event.
func TestGolden(t *testing.T) {
	algotest.Golden(t, Algorithm, "run", sim.Config{
		Config: protocol.Config{N: 5}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond),
	})
}

// A line, a star and what is between: everything holds, on channels that are not FIFO, too.
func TestTrees(t *testing.T) {
	for _, c := range []check.Config{within(4, 1), within(5, 1), within(4, 3), within(5, 3), within(5, 4)} {
		for _, c.FIFO = range []bool{false, true} {
			v, err := check.Run(Algorithm, c)
			if err != nil || v.Verdict != check.Holds {
				t.Errorf("%s: %s, %v\n%s", v.Bounds, v.Verdict, err, strings.Join(v.Trace, "\n"))
			}
			t.Logf("%d states, %s", v.States, v.Bounds)
		}
	}
}

// The claims at other sizes, for a line, a star and what is between: one at a time, and all again at once.
func TestClaims(t *testing.T) {
	for _, n := range []int{4, 7, 20} {
		for _, k := range []int64{1, 2, 3, 100} {
			c := sim.Config{
				Config: tall(n, k), Entries: []int{20}, Delay: sim.Constant(time.Millisecond),
				Think: sim.Constant(time.Minute), Hold: sim.Constant(time.Millisecond),
			}
			r, err := sim.Run(Algorithm, c)
			if want := there(c.Config); err != nil || math.Abs(r.MessagesPerEntry-want) > 1e-9 || math.Abs(r.Waiting.Mean-want) > 1e-9 {
				t.Errorf("n=%d, k=%d: %g messages, %g delays, want %g, %v", n, k, r.MessagesPerEntry, r.Waiting.Mean, want, err)
			}
			c.Think = sim.Constant(0)
			r, err = sim.Run(Algorithm, c)
			if got, most := r.MessagesPerEntry, protocol.AllButOne(4)(c.Config); err != nil || got > most || got < 0.9*most {
				t.Errorf("n=%d, k=%d: %g messages under load, want %g, %v", n, k, got, most, err)
			}
		}
	}
}

func system(n int, k int64) *algotest.System[Message] {
	return algotest.NewSystem(Algorithm, tall(n, k), 0)
}

// A request goes along the pointers, and the token comes back the same way: 2d messages, d
// to ask for it. Raymond 1989, section 2.
func TestMessages(t *testing.T) {
	const n = 15
	s := system(n, 2)
	holder := protocol.ID(n - 1)
	for _, x := range []struct {
		user protocol.ID
		d    int
	}{{14, 0}, {6, 1}, {5, 2}, {7, 5}, {7, 0}, {14, 6}, {0, 3}} {
		before, asked := s.Sent, s.Kinds[Request]
		s.Try(x.user)
		s.Settle()
		if got := s.Inside(); !slices.Equal(got, []protocol.ID{x.user}) {
			t.Fatalf("inside: %v, want %d", got, x.user)
		}
		s.Exit(x.user)
		s.Settle()
		if s.Sent-before != 2*x.d || s.Kinds[Request]-asked != x.d {
			t.Errorf("from %d to %d: %d messages, want %d", holder, x.user, s.Sent-before, 2*x.d)
		}
		holder = x.user
	}
}

// A process asks once for all that stand in its queue, and sends a REQUEST behind the token if
// others wait for it. Raymond 1989, section 3.
func TestOneRequest(t *testing.T) {
	s := system(3, 2) // 0 between 1 and 2, which holds the token
	s.Try(2)
	s.Try(1)
	s.Try(0)
	s.Deliver(1, 0, 0)
	if got := s.InFlight(0, 2); !slices.Equal(got, []Message{Request}) {
		t.Fatalf("0 sends %v, want one REQUEST", got)
	}
	s.Deliver(0, 2, 0)
	s.Exit(2)
	s.Try(2)
	for _, id := range []protocol.ID{0, 1, 2} {
		s.Settle()
		if got := s.Inside(); !slices.Equal(got, []protocol.ID{id}) {
			t.Fatalf("inside: %v, want %d", got, id)
		}
		s.Exit(id)
	}
}

// A REQUEST may overtake the token that was sent before: its receiver has asked, so it only
// remembers who wants the token next. Raymond 1989, on message overtaking.
func TestOvertaking(t *testing.T) {
	s := system(2, 2)
	s.Try(0)
	s.Deliver(0, 1, 0)
	s.Try(1) // after the token it sends a REQUEST
	s.Deliver(1, 0, 1)
	if len(s.Inside()) != 0 || len(s.InFlight(0, 1)) != 0 {
		t.Fatalf("inside: %v, and 0 sends %v", s.Inside(), s.InFlight(0, 1))
	}
	s.Deliver(1, 0, 0)
	s.Exit(0)
	s.Settle()
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{1}) {
		t.Errorf("inside: %v, want 1", got)
	}
}

// Tries are not served in the order in which they happened before one another: the token tells p2 that
// p1 tries, and p2 keeps it for its next try, because the REQUEST behind the token is late.
func TestOrder(t *testing.T) {
	v, err := check.Run(causal.Of(Algorithm), check.Config{
		Config: protocol.Config{N: 3}, Entries: []int{2}, Properties: []string{causal.Order},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"try p2", "deliver p2 p1 REQUEST", "try p1", "deliver p1 p3 REQUEST", "deliver p3 p1 PRIVILEGE", "deliver p1 p2 PRIVILEGE",
		"exit p2", "try p2",
	}
	if v.Verdict != check.Violated || !slices.Equal(v.Trace, want) {
		t.Errorf("%s, %s", v.Verdict, strings.Join(v.Trace, "\n"))
	}
}

// What people read.
func TestShow(t *testing.T) {
	s := system(3, 2)
	s.Try(2)
	s.Try(1)
	s.Settle()
	for id, want := range []string{"holder #2, asked true, queue #1", "holder #0, asked true, queue #1", "holder #2, asked false, queue #0"} {
		if got := protocol.Show(s.Procs[id]); got != want {
			t.Errorf("%d: %q, want %q", id, got, want)
		}
	}
	if got := Algorithm.Text(Request) + Algorithm.Text(Privilege); got != "REQUESTPRIVILEGE" {
		t.Errorf("messages %s", got)
	}
}

func TestMutants(t *testing.T) {
	refuse := func(try bool, from protocol.ID, list ...Message) mutant.Check {
		return mutant.Panics("raymond: a ", func() {
			s := system(4, 2)
			if try {
				s.Try(1) // which asks 3
			}
			for _, m := range list {
				var out protocol.Out[Message]
				s.Procs[1].Step(protocol.Event[Message]{Input: protocol.NewReceive(from), Msg: m}, &out)
			}
		})
	}
	// Every mutant is caught, so that there is no list of survivors.
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			mutant.Decided(Algorithm, within(1, 2)),
			mutant.Decided(Algorithm, within(3, 2)),
			mutant.Decided(Algorithm, within(4, 1)),
			refuse(false, 3, Privilege),
			refuse(true, 0, Privilege),
			refuse(false, 2, Request),
			refuse(false, 0, Request, Request),
			algotest.Examine(Algorithm, algotest.Options{Skip: map[string]string{
				"Exhaustive": "done above", "Allocations": "cannot fail by a wrong step", "Events": "done above",
			}}),
		},
		Replace: []mutant.Replacement{
			mutant.Edit("try is forgotten", "p.queue = append(p.queue, p.id)", ""),
			mutant.Edit("exit stays inside", "p.using = false", ""),
			mutant.Edit("a PRIVILEGE is forgotten", "p.holder = p.id\n", "\n"),
			mutant.Edit("a REQUEST is forgotten", "p.queue = append(p.queue, from)", ""),
			mutant.Edit("a REQUEST goes first", "p.queue = append(p.queue, from)", "p.queue = slices.Insert(p.queue, 0, from)"),
			mutant.Edit("the token goes to the last one", "p.holder, p.asked = p.queue[0], false",
				"p.holder, p.asked = p.queue[len(p.queue)-1], false"),
			mutant.Edit("the pointer stays", "p.holder, p.asked = p.queue[0], false", "p.asked = false"),
			mutant.Edit("who passes the token has still asked", "p.holder, p.asked = p.queue[0], false", "p.holder = p.queue[0]"),
			mutant.Edit("the head stays in the queue", "p.queue = append(p.queue[:0], p.queue[1:]...)", ""),
			mutant.Edit("who is inside does not use the token", "p.using = true", ""),
			mutant.Edit("it asks again and again", "p.asked = true\n", "\n"),
			mutant.Edit("it asks before it passes the token", "p.assignPrivilege(out)\n\tp.makeRequest(out)",
				"p.makeRequest(out)\n\tp.assignPrivilege(out)"),
		},
	})
}

// BenchmarkStep measures a step under contention, the simulator included.
func BenchmarkStep(b *testing.B) {
	const n = 10
	const stepsAnEntry = 6 // up to four messages, try and exit
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := sim.Run(Algorithm, sim.Config{
		Config: protocol.Config{N: n}, Entries: []int{1 + b.N/(n*stepsAnEntry)}, Think: sim.Constant(0),
		Hold: sim.Constant(time.Millisecond),
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
