//go:build unix

package sim_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// bench makes one run of b.N events or so, of which each entry takes the given
// number, so that an operation is an event. Processor time tells more than ns/op where the
// machine has other work.
func bench[M any](b *testing.B, name string, a protocol.Algorithm[M], c sim.Config, anEntry int) {
	b.Run(name, func(b *testing.B) {
		c.Entries = []int{max(1, b.N/(max(c.N, c.Clients)*anEntry))}
		b.ReportAllocs()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var r sim.Result
		var err error
		took := processorTime(b, func() { r, err = sim.NewRunner(a).Run(c) })
		runtime.ReadMemStats(&after)
		if err != nil || r.ViolationCount > 0 {
			b.Fatal(err, r.Violations)
		}
		b.ReportMetric(float64(took)/float64(r.Events), "cpu-ns/event")
		b.ReportMetric(float64(r.Events)/took.Seconds(), "events/cpu-s")
		b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(r.Events), "allocs/event")
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
	c := saturated(100, 1, constant)
	c.Clients = 100
	bench(b, "n=100/clients=100/constant", sigma.Algorithm, c, 400)
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
			took := processorTime(b, func() {
				for i := range b.N {
					c.Seed = uint64(i)
					r, err := run(c)
					if err != nil {
						b.Fatal(err)
					}
					events += r.Events
				}
			})
			b.ReportMetric(float64(took.Microseconds())/float64(b.N), "cpu-us/run")
			b.ReportMetric(float64(events)/float64(b.N), "events/run")
		})
	}
	short("new", func(c sim.Config) (sim.Result, error) { return sim.NewRunner(sigma.Algorithm).Run(c) })
	short("reused", sim.NewRunner(sigma.Algorithm).Run)
}

// processorTime is how long f keeps processors busy, the collection of its
// garbage included.
func processorTime(t testing.TB, f func()) time.Duration {
	t.Helper()
	runtime.GC()
	before := used(t)
	f()
	return used(t) - before
}

func used(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
