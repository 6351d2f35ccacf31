package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/toys/sessions"
	"github.com/poundlock/poundlock/algo/algotest/toys/votes"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// leaseStorm is a run with random faults of members that have leases.
func leaseStorm(n int, seed uint64) sim.Config {
	return sim.Config{
		Config: protocol.Config{N: n}, Seed: seed, Entries: []int{20}, Delay: sim.Exponential(time.Millisecond),
		Think: sim.Exponential(20 * time.Millisecond), Hold: sim.Exponential(30 * time.Millisecond), Lease: 20 * time.Millisecond,
		CrashEvery: 300 * time.Millisecond, RecoverEvery: 200 * time.Millisecond, PauseEvery: 150 * time.Millisecond,
		PartitionEvery: 100 * time.Millisecond, FaultsUntil: 3 * time.Second,
	}
}

// Under crashes, recoveries, pauses, partitions and revocations one user is inside at a
// time, and every mistake shows.
func TestVotes(t *testing.T) {
	for _, m := range []votes.Mistake{votes.None, votes.Revokes, votes.Deaf, votes.Hasty, votes.Forgets} {
		violations, lapsed, entries, ejected := 0, 0, 0, 0
		for seed := range uint64(450) {
			c := leaseStorm(3+int(seed%3), seed)
			if seed%2 == 1 { // who comes back is sooner back than others know that it was gone
				c.CrashEvery, c.RecoverEvery, c.Detect = 70*time.Millisecond, 11*time.Millisecond, 30*time.Millisecond
				c.Delay = sim.Skewed(10*time.Microsecond, 30*time.Millisecond)
			}
			r, err := sim.Run(votes.Algorithm(m), c)
			if err != nil {
				t.Fatal(err)
			}
			violations += int(r.ViolationsOf[history.Exclusion])
			lapsed, entries, ejected = lapsed+r.LeasesLapsed, entries+int(r.Entries), ejected+int(r.Ejected)
			if m <= votes.Revokes && r.ViolationCount > 0 {
				t.Errorf("mistake %d, seed %d: %v", m, seed, r.Violations)
			}
		}
		if right := m <= votes.Revokes; right && (lapsed < 200 || entries < 500 || ejected == 0) || !right && violations == 0 {
			t.Errorf("mistake %d: %d violations; %d leases lapsed, %d entries, %d ejected", m, violations, lapsed, entries, ejected)
		}
	}
}

// Sessions are as protocol.LeaseDetector says.
func TestSessions(t *testing.T) {
	for _, lie := range []sessions.Lie{sessions.None, sessions.Reverse, sessions.Late, sessions.Repeat} {
		panics := 0
		for seed := range uint64(20) {
			r, err := sim.Run(sessions.Algorithm(lie, seed%2 == 0), leaseStorm(2+int(seed%4), seed))
			if err != nil {
				t.Fatal(err)
			}
			if panics += int(r.ViolationsOf["panic"]); lie == sessions.None && panics > 0 {
				t.Fatalf("seed %d: %v", seed, r.Violations)
			}
		}
		if lie != sessions.None && panics == 0 {
			t.Errorf("lie %d: nobody notices", lie)
		}
	}
}

// TestPartitionOfMembers cuts members off in each way: who is inside on the side of a
// minority is ejected before somebody of the majority enters, and comes back in the end.
func TestPartitionOfMembers(t *testing.T) {
	for _, test := range []struct {
		n     int
		fault string
	}{
		{5, "at 5ms partition p1,p2 for 100ms"},
		{5, "at 5ms partition p1 for 100ms"},
		{3, "at 5ms cut p2 p1 for 100ms\nat 5ms cut p3 p1 for 100ms"},
		{3, "at 5ms cut p1 p2 for 100ms\nat 5ms cut p1 p3 for 100ms"},
		{3, "at 5ms pause p1 for 100ms"},
		{3, "at 5ms lapse p2 p1\nat 5ms lapse p3 p1"},
	} {
		steps, err := scenario.Names{Members: test.n}.Parse(strings.NewReader(test.fault))
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		r, err := sim.Run(votes.Algorithm(votes.None), sim.Config{
			Config: protocol.Config{N: test.n}, Entries: []int{2}, Think: sim.Constant(10 * time.Microsecond), Hold: sim.Constant(30 * time.Millisecond),
			Lease: 10 * time.Millisecond, Faults: steps, Trace: &log,
		})
		if err != nil || r.ViolationCount > 0 || r.Entries != uint64(2*test.n) || r.Ejected != 1 {
			t.Errorf("%q: %v %v, %d entries, %d ejected", test.fault, err, r.Violations, r.Entries, r.Ejected)
		}
		text := log.String()
		for _, want := range []string{" p1 crit", "lapse p1 ", " p1 ejected", " crit"} {
			i := strings.Index(text, want)
			if i < 0 {
				t.Errorf("%q: no %q in its order", test.fault, want)
				break
			}
			text = text[i+len(want):]
		}
	}
}

// What makes no sense is refused.
func TestLeaseConfig(t *testing.T) {
	for fault, want := range map[string]string{
		"at 1ms suspect p1 p2":       "faults are amnesia, drain, crash, pause, partition, cut, recover, lapse",
		"at 1ms lapse p1 p1":         "want 2 processes, all different",
		"at 1ms cut p1 p1 for 1ms":   "want 2 processes, all different",
		"at 1ms amnesia p1":          "memory loss",
		"at 1ms partition p1 for 1s": "",
	} {
		steps, err := scenario.Names{Members: 3}.Parse(strings.NewReader(fault))
		if err != nil {
			t.Fatal(err)
		}
		_, err = sim.Run(votes.Algorithm(votes.None), sim.Config{Config: protocol.Config{N: 3}, Entries: []int{1}, Faults: steps})
		if text := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(text, want) {
			t.Errorf("%q: %v, want %q", fault, err, want)
		}
	}
}
