package sim_test

import (
	"encoding/json"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// uneven has pauses, partitions and delays that bring messages out of order.
func uneven(n int, delay sim.Dist) sim.Config {
	return sim.Config{
		Config: protocol.Config{N: n}, Entries: []int{40}, Seed: 7, Digest: true, Delay: delay,
		Think: sim.Exponential(5 * time.Millisecond), Hold: sim.Uniform(0, 2*time.Millisecond),
		PauseEvery: 20 * time.Millisecond, PartitionEvery: 30 * time.Millisecond,
	}
}

// A log is a function of algorithm and Config, and stays so from one version to the
// next: a digest may change only where a commit says why the run must.
func TestLogsStay(t *testing.T) {
	logged := func(n int, delay sim.Dist) sim.Config {
		c := saturated(n, 20, delay)
		c.Seed, c.Digest = 3, true
		return c
	}
	fifo := uneven(7, sim.Uniform(0, 9*time.Millisecond))
	fifo.FIFO = true
	even, fenced := stormy(4), stormy(5)
	even.Delay = constant
	fenced.Options = map[string]int64{"fence": sigma.FenceOn}
	for name, test := range map[string]struct{ got, want string }{
		"ricart-agrawala, saturated":   {digest(t, ricartagrawala.Algorithm, logged(16, constant)), "acd05d0f09a9f3f6"},
		"ricart-agrawala, exponential": {digest(t, ricartagrawala.Algorithm, logged(70, exponential)), "a317490086a3de25"},
		"ricart-agrawala, uneven":      {digest(t, ricartagrawala.Algorithm, uneven(9, constant)), "36c897fae683c135"},
		"ricart-agrawala, fifo":        {digest(t, ricartagrawala.Printed, fifo), "ba5658a9f5076f58"},
		"suzuki-kasami, uneven":        {digest(t, suzukikasami.Algorithm, uneven(9, constant)), "9429ae50ef9ab2bf"},
		"sigma, stormy":                {digest(t, sigma.Algorithm, stormy(1)), "e5f393a86898c6ef"},
		"sigma, stormy, even":          {digest(t, sigma.Algorithm, even), "4ac361bf2d303b97"},
		"sigma, stormy, fenced":        {digest(t, sigma.Algorithm, fenced), "4842477b1ed59591"},
		"sigma literal, stormy":        {digest(t, sigma.Literal, stormy(2)), "7dcdec41330e0b9f"},
	} {
		if test.got != test.want {
			t.Errorf("%s: the log has digest %s, and had %s", name, test.got, test.want)
		}
	}
}

func digest[M any](t *testing.T, a protocol.Algorithm[M], c sim.Config) string {
	t.Helper()
	return mustRun(t, a, c).LogSHA256[:16]
}

// A run in used memory is the run in new memory, whatever was run before: larger,
// smaller, with faults, broken off by a panic.
func TestRunner(t *testing.T) {
	even := stormy(9)
	even.Delay, even.N, even.Clients, even.Entries = sim.Constant(time.Millisecond), 7, 12, []int{5}
	small := sim.Config{Config: protocol.Config{N: 1}, Clients: 1, Entries: []int{1}, Digest: true}
	fifo := stormy(3)
	fifo.FIFO = true
	configs := []sim.Config{fifo, stormy(1), small, even, stormy(2), fifo, small, stormy(1), even}
	r := sim.NewRunner(sigma.Algorithm)
	for i, c := range configs {
		want := mustRun(t, sigma.Algorithm, c)
		got, err := r.Run(c)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := timeless(got), timeless(want); a != b {
			t.Errorf("run %d:\n%s\nin new memory:\n%s", i, a, b)
		}
	}
	if _, err := r.Run(sim.Config{}); err == nil {
		t.Error("no members, and no error")
	}

	panics := true
	toy := sim.NewRunner(toys(protocol.Members, func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		if panics && ev.Kind == protocol.Try {
			panic("toy: cannot be")
		}
		grabber(noToken)(id, ev, out)
	}))
	for _, panics = range []bool{true, false, true} {
		got, err := toy.Run(sim.Config{Config: protocol.Config{N: 1}, Entries: []int{3}})
		if err != nil || (got.ViolationsOf["panic"] == 1) != panics || (got.ViolationCount > 0) != panics {
			t.Errorf("panics=%v: %+v, %v", panics, got, err)
		}
	}
}

// timeless is a result without what the machine has to do with.
func timeless(r sim.Result) string {
	r.Seconds, r.EventsPerS = 0, 0
	b, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// An event allocates nothing: a run of twice as many events allocates as much. With
// random delays a longer run meets rarer ones, for which a histogram has no memory yet;
// so the runs follow one that met them. The runtime allocates now and then, above all
// when it collects garbage, so it does not, and the least of some runs counts.
func TestNoAllocationAnEvent(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, n := range []int{10, 20, 50, 100, 200} {
		entries := max(1, 20_000/(2*n*n))
		compare := func(delay sim.Dist, run func(sim.Config) (sim.Result, error)) {
			t.Helper()
			few, short := allocations(t, saturated(n, entries, delay), run)
			many, long := allocations(t, saturated(n, 2*entries, delay), run)
			if many > few {
				t.Errorf("n=%d, delay %v: %d allocations in %d events, %d in %d", n, delay, few, short, many, long)
			}
		}
		compare(constant, func(c sim.Config) (sim.Result, error) { return sim.NewRunner(ricartagrawala.Algorithm).Run(c) })
		runner := sim.NewRunner(ricartagrawala.Algorithm)
		if _, err := runner.Run(saturated(n, 2*entries, exponential)); err != nil {
			t.Fatal(err)
		}
		compare(exponential, runner.Run)
	}
}

// Tokens and vectors of groups' algorithms lie in arrays that several messages share, and which nobody
// may write again: an array in hundreds of events. A process that copies a vector at each step
// is what that catches.
func TestFewAllocationsOfGroups(t *testing.T) {
	lane.CI.Need(t, "long runs that count allocations")
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	more := func(c sim.Config, run func(sim.Config) (sim.Result, error)) float64 {
		t.Helper()
		few, short := allocations(t, c, run)
		c.Entries = []int{2 * c.Entries[0]}
		many, long := allocations(t, c, run)
		return (float64(many) - float64(few)) / float64(long-short)
	}
	c := sim.Config{
		Config: protocol.Config{N: 100}, Entries: []int{10}, Groups: 50, Popularity: sim.Popularity{Alpha: 20, Beta: 80},
		Delay: sim.Exponential(10 * time.Millisecond), Think: sim.Exponential(50 * time.Millisecond), Hold: sim.Uniform(0, 40*time.Millisecond),
	}
	const most = 1. / 200
	if a := more(c, sim.NewRunner(tokengme.Algorithm).Run); a > most {
		t.Errorf("tokengme: %.5f allocations an event, want %g at most", a, most)
	}
	if a := more(c, sim.NewRunner(ra2.Algorithm).Run); a > most {
		t.Errorf("ra2: %.5f allocations an event, want %g at most", a, most)
	}
	wasteful := ra2.Algorithm
	wasteful.New = func(id protocol.ID, c protocol.Config) protocol.Process[ra2.Message] {
		return &copying[ra2.Message]{Process: ra2.Algorithm.New(id, c), vector: make([]uint64, c.N)}
	}
	if a := more(c, sim.NewRunner(wasteful).Run); a < 100*most {
		t.Errorf("a copy of a vector at each step: %.5f allocations an event, want %g at least", a, 100*most)
	}
}

// copying copies a vector at each step.
type copying[M any] struct {
	protocol.Process[M]
	vector []uint64
}

func (p *copying[M]) Step(ev protocol.Event[M], out *protocol.Out[M]) {
	p.vector = slices.Clone(p.vector)
	p.Process.Step(ev, out)
}

// allocations are the least that a run makes, and its events.
func allocations(t *testing.T, c sim.Config, run func(sim.Config) (sim.Result, error)) (least uint64, events int64) {
	t.Helper()
	least = math.MaxUint64
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := run(c)
		runtime.ReadMemStats(&after)
		if err != nil || r.ViolationCount > 0 {
			t.Fatal(r.Violations, err)
		}
		least, events = min(least, after.Mallocs-before.Mallocs), r.Events
	}
	return least, events
}
