package ra1

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// BenchmarkRun measures an event, the simulator included, in a workload of Mittal and Mohan's
// experiments: section 4.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{100} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := sim.NewRunner(Algorithm).Run(sim.Config{
				Config: protocol.Config{N: n}, Entries: []int{max(1, b.N/(2*n*n))},
				Groups: 50, Popularity: sim.Popularity{Alpha: 20, Beta: 80}, Delay: sim.Exponential(10 * time.Millisecond),
				Think: sim.Exponential(50 * time.Millisecond), Hold: sim.Uniform(0, 40*time.Millisecond),
			})
			if err != nil || r.ViolationCount > 0 {
				b.Fatal(err, r.Violations)
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(r.EventsPerS, "events/s")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(r.Events), "allocs/event")
		})
	}
}
