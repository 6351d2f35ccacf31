package history

import (
	"math"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// What came before Discard counts nowhere, of a section and of the time that somebody is inside
// only what comes later; MeasuresUntil counts what lasts.
func TestDiscard(t *testing.T) {
	m := newMonitor(3)
	enter := func(u int, at int64) {
		m.Input(u, at, protocol.Input{Kind: protocol.Try, Data: "a"})
		m.Act(u, at+1, protocol.Act{Do: protocol.Crit, Data: "a"})
	}
	exit := func(u int, at int64) {
		m.Input(u, at, protocol.Input{Kind: protocol.Exit})
		m.Act(u, at, protocol.Act{Do: protocol.Rem})
	}
	for k := range int64(10) { // user 2 is done before
		enter(2, 10*k)
		exit(2, 10*k+5)
	}
	enter(0, 100)
	m.Discard(200)
	if s := m.Measures(); s.Entries != 0 || s.Waiting.Count != 0 || s.Sessions != 0 || s.Concurrency.Max != 1 || s.MaxBypass != 0 {
		t.Errorf("after Discard: %+v", s)
	}
	enter(1, 299) // 0 and 1 are inside together from 300 to 400, and 1 alone until 500
	both := m.MeasuresUntil(350)
	exit(0, 400)
	until := m.MeasuresUntil(500)
	exit(1, 500)
	enter(0, 599)
	last := m.MeasuresUntil(600)
	exit(0, 600)
	whole := m.Measures()
	for name, s := range map[string]struct {
		Measures
		entries uint64
		mean    float64
		rate    float64
		jain    float64
	}{
		"while both are inside": {both, 1, (150 + 50) / 150., 1 / 150e-9, 0.5},
		"while 1 is inside":     {until, 1, (200 + 200) / 300., 1 / 300e-9, 0.5},
		"at an entry":           {last, 2, (200 + 200) / 300., 2 / 400e-9, 0.9804},
		"in the end":            {whole, 2, (200 + 200) / 300., 2 / 400e-9, 0.9012},
	} {
		if s.Entries != s.entries || s.Concurrency.Mean != s.mean || s.Concurrency.Max != 2 || s.Throughput != s.rate {
			t.Errorf("%s: %+v, want %+v", name, s.Measures, s)
		}
		if math.Abs(s.Jain-s.jain) > 1e-4 {
			t.Errorf("%s: Jain's index %v, want %v", name, s.Jain, s.jain)
		}
	}
}
