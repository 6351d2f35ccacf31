package membership

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/poundlock/poundlock/algo/centralised"
	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
)

// storm runs worlds with faults, of 2 to 5 processes and with each number of phases, and
// returns the first violation: it is one too when somebody waits though all faults are over.
func storm[M any](a protocol.Algorithm[M], from, to int) (fault string, w *world[M]) {
	for seed := from; seed < to; seed++ {
		c := protocol.Config{N: 2 + seed%4, Options: map[string]int64{phasesOption: int64(3 - seed/4%3)}}
		if a.Variant == tokengme.Bounded.Variant {
			c.Options["smax"] = 2
		}
		w := newWorld(a, c, uint64(seed))
		if seed%2 == 0 {
			w.tick = 1 << roundBits
		}
		w.run(300+seed%700, 5+seed%60, true)
		w.calm()
		if w.fault != "" {
			return fmt.Sprintf("seed %d: %s", seed, w.fault), w
		}
	}
	return "", nil
}

func storms[M any](t *testing.T, a protocol.Algorithm[M]) {
	to := lane.Of(t, "worlds", 50, 200, 20_000)
	if fault, w := storm(a, 0, to); fault != "" {
		t.Fatalf("%v: %s\n%s", w.c, fault, w.tell(150))
	}
}

func TestStorm(t *testing.T) {
	t.Run("suzuki-kasami", func(t *testing.T) { storms(t, suzukikasami.Algorithm) })
	t.Run("ra2", func(t *testing.T) { storms(t, ra2.Algorithm) })
	t.Run("centralised", func(t *testing.T) { storms(t, centralised.Algorithm) })
	t.Run("tokengme", func(t *testing.T) { storms(t, tokengme.Algorithm) })
	t.Run("tokengme several", func(t *testing.T) { storms(t, tokengme.Several) })
	t.Run("tokengme bounded", func(t *testing.T) { storms(t, tokengme.Bounded) })
}

// A restart after a crash, and one for a join, each cost at most 5(n-1) messages, of each kind
// n-1; and messages of the algorithm and LEAVEs together at most 2n-1 a request.
func TestCosts(t *testing.T) {
	for _, fault := range costs() {
		t.Error(fault)
	}
}

func costs() (faults []string) {
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for seed := range uint64(60) {
		const n = 5
		w := newWorld(tokengme.Algorithm, protocol.Config{N: n}, seed)
		restarts := func() (all int) {
			for _, kind := range []string{"NOTIFY", "JOIN", "RESTART", "DONE", "START", "RESUME"} {
				k := w.count[kind]
				if k > n-1 {
					bad("seed %d: %d messages %s, want %d at most", seed, k, kind, n-1)
				}
				all += k
				delete(w.count, kind)
			}
			return all
		}
		victim := protocol.ID(seed % n)
		w.run(200, 0, true)
		w.crash(victim)
		w.run(3000, 0, false)
		if got := restarts(); got > 5*(n-1) || got == 0 {
			bad("seed %d: %d messages for a crash, want 1 to %d", seed, got, 5*(n-1))
		}
		w.run(200, 0, true)
		w.up(victim)
		w.run(3000, 0, false)
		if got := restarts(); got > 5*(n-1) || got == 0 {
			bad("seed %d: %d messages for a join, want 1 to %d", seed, got, 5*(n-1))
		}
		rest := 0
		for _, k := range w.count {
			rest += k
		}
		if most := (2*n - 1) * w.tries; rest > most {
			bad("seed %d: %d messages for %d requests, want %d at most", seed, rest, w.tries, most)
		}
		if w.fault != "" {
			bad("seed %d: %s\n%s", seed, w.fault, w.tell(100))
			break
		}
	}
	return faults
}

// Under a partition a majority goes on, and a minority fails closed, says so, and joins when
// the partition ends.
func TestPartition(t *testing.T) {
	for seed := range uint64(40) {
		for _, minority := range []uint64{0b00011, 0b11000, 0b00001, 0b10000} {
			w := newWorld(tokengme.Algorithm, protocol.Config{N: 5, Options: map[string]int64{tellOption: 1}}, seed)
			w.run(300, 0, true)
			w.divide(minority)
			w.run(5000, 0, false)
			entries := w.entries
			for i := range protocol.ID(5) {
				w.try(i)
			}
			w.run(5000, 0, false)
			if got := w.entries - entries; got != 5-bits.OnesCount64(minority) {
				t.Errorf("seed %d: %d entries of five tries with %b apart", seed, got, minority)
			}
			if w.refused < bits.OnesCount64(minority) {
				t.Errorf("seed %d: %d of %b were told", seed, w.refused, minority)
			}
			w.calm()
			if w.fault != "" {
				t.Fatalf("seed %d, %b: %s\n%s", seed, minority, w.fault, w.tell(100))
			}
		}
	}
}
