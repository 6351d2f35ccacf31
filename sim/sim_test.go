package sim_test

import (
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/sim"
)

func run(t *testing.T, c sim.Config) sim.Result {
	t.Helper()
	r, err := sim.Run(ricartagrawala.Algorithm, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Ricart & Agrawala 1981: 2(n-1) messages an entry; a request and a reply to
// wait for when nobody competes; one reply from one holder to the next.
func TestCostsOfRicartAgrawala(t *testing.T) {
	low := run(t, sim.Config{Config: protocol.Config{N: 10}, Think: sim.Constant(time.Second), Digest: true})
	if low.MessagesPerEntry != 18 || low.WaitingMS.Mean != 2 || low.WaitingMS.Max != 2 || low.ViolationCount != 0 {
		t.Errorf("low load: %+v", low)
	}
	high := run(t, sim.Config{
		Config: protocol.Config{N: 10}, Think: sim.Constant(0), Hold: sim.Constant(time.Millisecond), Digest: true,
	})
	if high.MessagesPerEntry != 18 || high.SyncDelayMS.Mean != 1 || high.SyncDelayMS.Max != 1 || high.ViolationCount != 0 {
		t.Errorf("high load: %+v", high)
	}
}

func BenchmarkRicartAgrawala(b *testing.B) {
	for name, delay := range map[string]sim.Dist{
		"constant":    sim.Constant(time.Millisecond),
		"exponential": sim.Exponential(time.Millisecond),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			c := sim.Config{
				Config: protocol.Config{N: 16}, Entries: []int{max(1, b.N/(16*31))},
				Delay: delay, Think: sim.Constant(0), Hold: sim.Constant(time.Millisecond),
			}
			r, err := sim.Run(ricartagrawala.Algorithm, c)
			if err != nil || r.ViolationCount != 0 {
				b.Fatal(r.Violations, err)
			}
			b.ReportMetric(r.EventsPerS, "events/s")
		})
	}
}
