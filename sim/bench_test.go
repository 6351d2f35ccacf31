package sim_test

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/sim"
)

var (
	constant    = sim.Constant(time.Millisecond)
	exponential = sim.Exponential(time.Millisecond)
)

// saturated has every user try for ever, so to speak.
func saturated(n, entries int, delay sim.Dist) sim.Config {
	return sim.Config{
		Config: protocol.Config{N: n}, Entries: []int{entries}, Delay: delay, Think: sim.Constant(0),
	}
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
		compare(constant, func(c sim.Config) (sim.Result, error) { return sim.Run(ricartagrawala.Algorithm, c) })
		runner := sim.NewRunner(ricartagrawala.Algorithm)
		if _, err := runner.Run(saturated(n, 2*entries, exponential)); err != nil {
			t.Fatal(err)
		}
		compare(exponential, runner.Run)
	}
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

// bench makes one run of b.N events or so, of which each entry takes the given
// number, so that an operation is an event.
func bench[M any](b *testing.B, name string, a protocol.Algorithm[M], c sim.Config, anEntry int) {
	b.Run(name, func(b *testing.B) {
		c.Entries = []int{max(1, b.N/(max(c.N, c.Clients)*anEntry))}
		b.ReportAllocs()
		r, err := sim.Run(a, c)
		if err != nil || r.ViolationCount != 0 {
			b.Fatal(r.Violations, err)
		}
		b.ReportMetric(float64(r.Events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	})
}

func BenchmarkRicartAgrawala(b *testing.B) {
	for _, n := range []int{10, 20, 50, 100, 200} {
		bench(b, fmt.Sprintf("n=%d/constant", n), ricartagrawala.Algorithm, saturated(n, 1, constant), 2*n)
		bench(b, fmt.Sprintf("n=%d/exponential", n), ricartagrawala.Algorithm, saturated(n, 1, exponential), 2*n)
	}
}

func BenchmarkSuzukiKasami(b *testing.B) {
	for _, n := range []int{10, 100} {
		bench(b, fmt.Sprintf("n=%d/constant", n), suzukikasami.Algorithm, saturated(n, 1, constant), n+2)
		bench(b, fmt.Sprintf("n=%d/exponential", n), suzukikasami.Algorithm, saturated(n, 1, exponential), n+2)
	}
}

func BenchmarkSigma(b *testing.B) {
	for _, k := range []int{10, 100} {
		c := saturated(4, 1, constant)
		c.Clients = k
		bench(b, fmt.Sprintf("clients=%d/constant", k), sigma.Algorithm, c, 18)
		bench(b, fmt.Sprintf("clients=%d/literal", k), sigma.Literal, c, 12+15*k)
		c.Delay = exponential
		bench(b, fmt.Sprintf("clients=%d/exponential", k), sigma.Algorithm, c, 20)
	}
}

// Short runs as those who hunt make them: new memory for each, and the same.
func BenchmarkShortRuns(b *testing.B) {
	c := sim.Config{
		Config: protocol.Config{N: 4}, Clients: 5, Entries: []int{5}, Delay: exponential, Think: exponential,
		AmnesiaEvery: 100 * time.Millisecond,
	}
	short := func(name string, run func(sim.Config) (sim.Result, error)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			events := int64(0)
			for i := range b.N {
				c.Seed = uint64(i)
				r, err := run(c)
				if err != nil {
					b.Fatal(err)
				}
				events += r.Events
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
			b.ReportMetric(float64(events)/float64(b.N), "events/run")
		})
	}
	short("new", func(c sim.Config) (sim.Result, error) { return sim.Run(sigma.Algorithm, c) })
	short("reused", sim.NewRunner(sigma.Algorithm).Run)
}
