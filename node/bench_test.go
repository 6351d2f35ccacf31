package node_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
)

// benchmark has one client enter and leave locks as fast as it can: inFlight of
// them at a time. An entry is perEntry events at servers and client.
func benchmark(b *testing.B, host node.Host, members, inFlight int, perEntry float64) {
	_, peers := clusterAt(b, members, false, host, nil)
	c := clients(b, 1, peers, host, nil)[0]
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan struct{}, inFlight)
	b.ReportAllocs()
	b.ResetTimer()
	for k := range inFlight {
		name := fmt.Sprint("lock-", k)
		u := &hooks{ejected: func() {}}
		u.crit = func() { c.Exit(name) }
		u.rem = func() {
			if left.Add(-1) < 0 {
				done <- struct{}{}
				return
			}
			if err := c.Try(node.Mutex, name, u, false); err != nil {
				b.Error(err)
			}
		}
		u.rem()
	}
	for range inFlight {
		<-done
	}
	b.ReportMetric(float64(b.N)*perEntry/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkKeeper(b *testing.B) {
	for _, k := range []int{1, 100, 10000} {
		// TRY, EXIT, ENTER, ANSWER, LEAVE
		b.Run(fmt.Sprint("locks=", k), func(b *testing.B) { benchmark(b, node.HostOf(keeper(nil)), 1, k, 5) })
	}
}

func BenchmarkSigma(b *testing.B) {
	for _, k := range []int{1, 100} {
		b.Run(fmt.Sprint("locks=", k), func(b *testing.B) { benchmark(b, node.HostOf(sigma.Algorithm), 4, k, 14) })
	}
}
