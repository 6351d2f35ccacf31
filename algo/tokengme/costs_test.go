package tokengme

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// simulated is a run without violations.
func simulated(t testing.TB, a protocol.Algorithm[Message], c sim.Config) sim.Result {
	t.Helper()
	r, err := sim.Run(a, c)
	if err != nil || r.ViolationCount > 0 {
		t.Fatal(err, r.Violations)
	}
	return r
}

// Mittal & Mohan 2007, section 3.5: per request at most n-1 REQUESTs, n-1 RELEASEs and one
// TOKEN, and O(1) integers a message, under any load.
func TestMessagesOfRuns(t *testing.T) {
	for _, a := range []protocol.Algorithm[Message]{Algorithm, Several, WithClients} {
		for _, n := range []int{2, 5, 20, 100} {
			for _, think := range []time.Duration{0, 5 * time.Millisecond, time.Second} {
				c := sim.Config{
					Config: protocol.Config{N: n}, Entries: []int{20}, Groups: max(2, n/4),
					Delay: sim.Exponential(time.Millisecond), Hold: sim.Exponential(time.Millisecond), Think: sim.Exponential(think),
				}
				if think == 0 {
					c.Think = sim.Constant(0)
				}
				if a.Several {
					c.PerRequest = 2
				}
				if a.Users == protocol.Clients {
					c.Clients = 2 * n
				}
				r := simulated(t, a, c)
				entries := int(r.Entries)
				kinds := r.MessagesByKind
				if r.Messages > (2*n-1)*entries || kinds["TOKEN"] > entries || kinds["REQUEST"] > (n-1)*entries || kinds["RELEASE"] > (n-1)*kinds["TOKEN"] {
					t.Errorf("%q, n=%d, think %v: %v in %d entries", a.Variant, n, think, kinds, entries)
				}
				if r.IntegersPerMessage > 8 {
					t.Errorf("%q, n=%d, think %v: %g integers a message", a.Variant, n, think, r.IntegersPerMessage)
				}
			}
		}
	}
}

// With distinct groups and without contention an entry costs n messages and two hops; with
// constant delays it is one hop from a session to the next.
func TestDelays(t *testing.T) {
	const n = 10
	var distinct []protocol.Groups
	for i := range n {
		distinct = append(distinct, protocol.Groups(fmt.Sprint(i)))
	}
	c := sim.Config{
		Config: protocol.Config{N: n}, Wants: distinct, Entries: []int{50},
		Delay: sim.Constant(time.Millisecond), Hold: sim.Constant(time.Millisecond), Think: sim.Constant(time.Second),
	}
	// The first entry is that of the holder of the primary token: no TOKEN, no wait.
	r := simulated(t, Algorithm, c)
	if want := n*n*50 - 1; r.Messages != want || r.Waiting.Max != 2 || r.MessagesByKind["RELEASE"] != 0 {
		t.Errorf("%d messages, want %d, at most %g hops to enter, want 2; %v", r.Messages, want, r.Waiting.Max, r.MessagesByKind)
	}
	c.Think = sim.Constant(0)
	if r := simulated(t, Algorithm, c); r.SyncDelay.Max != 1 || r.Messages > n*n*50 {
		t.Errorf("%g hops from one session to the next, want 1; %d messages", r.SyncDelay.Max, r.Messages)
	}
	c.Wants, c.Hold = []protocol.Groups{"1"}, sim.Constant(time.Second)
	if r := simulated(t, Algorithm, c); r.Concurrency.Max != n || r.Sessions != 1 || r.Messages > n*n {
		t.Errorf("one group: %d inside together, want %d; %d sessions, %d messages", r.Concurrency.Max, n, r.Sessions, r.Messages)
	}
}

// BenchmarkStep measures a step of a hundred processes, the simulator included.
func BenchmarkStep(b *testing.B) {
	const n = 100
	const stepsAnEntry = 2 * n
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := sim.Run(Algorithm, sim.Config{
		Config: protocol.Config{N: n}, Groups: 50, Entries: []int{1 + b.N/(n*stepsAnEntry)},
		Delay: sim.Exponential(10 * time.Millisecond), Think: sim.Exponential(50 * time.Millisecond), Hold: sim.Exponential(20 * time.Millisecond),
	})
	if err != nil {
		b.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	allocations := float64(after.Mallocs-before.Mallocs) / float64(r.Events)
	b.ReportMetric(allocations, "allocs/step")
	b.ReportMetric(r.EventsPerS, "events/s")
	if r.Events > 1_000_000 && allocations > 0.02 {
		b.Errorf("%.4f allocations a step, want below 0.02", allocations)
	}
}
