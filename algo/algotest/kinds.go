package algotest

import (
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// OfEachKind checks that ten processes send n-1 messages of each kind for an entry, and no
// other number, in a workload that is c otherwise.
func OfEachKind[M any](t *testing.T, a protocol.Algorithm[M], c sim.Config) {
	t.Helper()
	const n, entries = 10, 20
	c.N, c.Entries, c.Delay = n, []int{entries}, sim.Exponential(time.Millisecond)
	r, err := sim.Run(a, c)
	if err != nil || r.ViolationCount != 0 {
		t.Fatal(err, r.Violations)
	}
	for _, kind := range a.Messages {
		if got, want := r.MessagesByKind[kind.Name], n*entries*(n-1); got != want {
			t.Errorf("%d groups: %d messages %s, want %d", c.Groups, got, kind.Name, want)
		}
	}
}
