package sim_test

import (
	"errors"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/centralised"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// ends is a lock of one user, whose first five entries of 20 take 100 ms and three messages
// each, the last five 50 ms and two, and all others 1 ms and one message.
func ends() protocol.Algorithm[note] {
	tries := 0
	return toys(protocol.Members, func(_ protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		wait, notes := time.Millisecond, 1
		switch {
		case tries < 5:
			wait, notes = 100*time.Millisecond, 3
		case tries >= 15:
			wait, notes = 50*time.Millisecond, 2
		}
		switch ev.Kind {
		case protocol.Try:
			for range notes {
				out.Send(1, note{})
			}
			out.SetTimer(1, int64(wait), 0)
		case protocol.Timeout:
			tries++
			out.Crit(0)
		case protocol.Exit:
			out.Rem()
		}
	})
}

// What is discarded at the ends counts nowhere, and what is left counts as if it were all.
func TestDiscarded(t *testing.T) {
	for _, test := range []struct {
		warmup, cooldown int
		waiting          float64 // mean, ms
		messages         float64 // an entry
		throughput       float64 // entries a s
	}{
		{0, 0, (5*100 + 10*1 + 5*50) / 20., (5*3 + 10 + 5*2) / 20., 20 / .780},
		{5, 0, (10*1 + 5*50) / 15., (10 + 5*2) / 15., 15 / .276}, // the last section of the warm-up is in the time
		{5, 5, 1, 1, 500},
		{10, 9, 1, 1, 500},
		{0, 5, (5*100 + 10*1) / 15., (5*3 + 10) / 15., 15 / .524},
		{18, 1, 50, 2, 1 / .051},
	} {
		c := sim.Config{
			Config: protocol.Config{N: 2}, Entries: []int{20, 0}, Think: sim.Constant(0), Hold: sim.Constant(time.Millisecond),
			Warmup: test.warmup, Cooldown: test.cooldown, Digest: true,
		}
		r := mustRun(t, ends(), c)
		left := uint64(20 - test.warmup - test.cooldown)
		if r.Entries != left || r.Waiting.Count != left || !near(r.Waiting.Mean, test.waiting) ||
			r.IntegersPerMessage != 1 || !near(r.MessagesPerEntry, test.messages) || !near(r.MessagesToEnter, test.messages) || !near(r.Throughput, test.throughput) {
			t.Errorf("without %d and %d: %d entries, waited %v, %v messages an entry, %v to enter, %v entries a s; want %+v",
				test.warmup, test.cooldown, r.Entries, r.Waiting, r.MessagesPerEntry, r.MessagesToEnter, r.Throughput, test)
		}
		d := r.Discarded
		if d.Warmup != uint64(test.warmup) || d.Cooldown != uint64(test.cooldown) || test.warmup+test.cooldown == 0 && d != (sim.Discarded{}) {
			t.Errorf("without %d and %d: %+v", test.warmup, test.cooldown, d)
		}
		c.Warmup, c.Cooldown = 0, 0
		if whole := mustRun(t, ends(), c); whole.LogSHA256 != r.LogSHA256 || whole.Events != r.Events || whole.VirtualSeconds != r.VirtualSeconds {
			t.Errorf("without %d and %d it is another run", test.warmup, test.cooldown)
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

// Where all users try at once again and again, waits grow from 0 at the start and shrink at the
// end: all are equal between.
func TestSteady(t *testing.T) {
	c := sim.Config{Config: protocol.Config{N: 10}, Think: sim.Constant(0)}
	if r := mustRun(t, centralised.Algorithm, c); r.Waiting.Mean == r.Waiting.Max {
		t.Fatal("the ends are like the middle: this test shows nothing")
	}
	c.Warmup, c.Cooldown = 20, 20
	r := mustRun(t, centralised.Algorithm, c)
	if r.Waiting.Mean != 27 || r.Waiting.Max != 27 || r.Jain < 0.9999 {
		t.Errorf("waited %+v, Jain's index %v", r.Waiting, r.Jain)
	}
}

// A run that ends within its warm-up has no measures.
func TestWithinWarmup(t *testing.T) {
	stops := toys(protocol.Members, func(_ protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		if ev.Kind == protocol.Try {
			out.Crit(0)
		}
	})
	r := mustRun(t, stops, sim.Config{Config: protocol.Config{N: 1}, Warmup: 50})
	if r.Entries != 0 || r.Waiting.Count != 0 || r.Discarded.Warmup != 1 || r.ViolationsOf["stuck"] == 0 {
		t.Errorf("%d entries, waited %+v, %+v, %v", r.Entries, r.Waiting, r.Discarded, r.Violations)
	}
}

func TestDiscardedConfig(t *testing.T) {
	for _, test := range []struct{ warmup, cooldown int }{{-1, 0}, {0, -1}, {20, 0}, {10, 10}, {0, 20}, {1 << 62, 1 << 62}} {
		c := sim.Config{Config: protocol.Config{N: 2}, Entries: []int{20, 0}, Warmup: test.warmup, Cooldown: test.cooldown}
		if _, err := sim.Run(ends(), c); !errors.Is(err, sim.ErrConfig) {
			t.Errorf("%+v of 20: %v", test, err)
		}
	}
	election := toys(protocol.Nobody, func(protocol.ID, protocol.Event[note], *protocol.Out[note]) {})
	if _, err := sim.Run(election, sim.Config{Config: protocol.Config{N: 2}, Warmup: 1}); !errors.Is(err, sim.ErrConfig) {
		t.Errorf("an election: %v", err)
	}
}
