package hunt

import (
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/toys/announce"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// Elections are hunted with crashes, recoveries and wrong suspicions: one that is right
// survives, and each mistake is found, and the checker sees it too.
func TestElections(t *testing.T) {
	for _, d := range []protocol.Detector{protocol.PerfectDetector, protocol.UnreliableDetector} {
		r := mustRun(t, announce.Algorithm(announce.None, d), Config{Seed: 1, Runs: 100, Workers: 2})
		for _, v := range r.Violations {
			t.Errorf("detector %d: run %d: %s: %s %v", d, v.Run, v.Property, v.Reason, v.Trace)
		}
		if r.Events < 10*r.Runs {
			t.Errorf("detector %d: %d events in %d runs: do they do anything?", d, r.Events, r.Runs)
		}
	}
	for _, c := range []struct {
		mistake  announce.Mistake
		property string
		steps    int // of the trace, at most
	}{
		{announce.Reuses, check.Epochs, 6},
		{announce.Ignores, check.Agreement, 4},
		{announce.Loops, check.Termination, 12},
	} {
		for _, n := range []int{0, 3} {
			a := announce.Algorithm(c.mistake, protocol.UnreliableDetector)
			v := finding(t, a, Config{Config: protocol.Config{N: n}, Seed: 1, Runs: 200, Workers: 2})
			if v.Property != c.property || !v.Replayed || len(v.Trace) > c.steps || v.Timed {
				t.Errorf("n=%d: %s after %d steps, replayed %v: %s %v; want %s after %d", n, v.Property, len(v.Trace), v.Replayed, v.Reason, v.Trace, c.property, c.steps)
			}
		}
	}
}
