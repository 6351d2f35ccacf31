package hunt

import (
	"testing"

	"github.com/poundlock/poundlock/verify/world"

	"github.com/poundlock/poundlock/algo/algotest/toys/votes"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// fewest is how few of n members are up at some time of a run.
func fewest(run []world.Action, n int) int {
	up, least := n, n
	for _, c := range run {
		switch c.Verb {
		case scenario.Crash:
			up--
		case scenario.Recover:
			up++
		}
		least = min(least, up)
	}
	return least
}

// shortened makes the first run of a in which somebody waits in vain as short as it can. With
// minorities who waits need not have a majority in what is left.
func shortened(t *testing.T, bare protocol.Algorithm[votes.Ballot], minorities bool) (system, []world.Action) {
	t.Helper()
	a := protocol.Erase(bare)
	c := Config{Seed: 1}
	for run := range int64(2000) {
		p := c.draw(a.Info, false, run, 0)
		if p.timed {
			continue
		}
		w := newWalker(newModel(a, p.system), &p)
		if w.walk(); w.Found == nil || !waits(w.Found.Property) {
			continue
		}
		if k := fewest(w.run, p.N); 2*k <= p.N {
			t.Fatalf("run %d: %d of %d members are up", run, k, p.N)
		}
		a.Majority = !minorities
		x := &reducer{
			model: newModel(a, p.system), run: w.run, property: w.Found.Property, anySize: true, stopped: func() bool { return false },
		}
		x.reduce()
		if _, good := x.replay(x.run); !good {
			t.Fatalf("run %d: nobody waits in what is left", run)
		}
		return x.model.sys, x.run
	}
	t.Fatal("nobody waits in vain")
	panic("unreachable")
}

// What is left of a run in which somebody waits in vain keeps the majority that the
// algorithm needs: else it would show nothing.
func TestShortenedKeepsMajority(t *testing.T) {
	for _, minorities := range []bool{false, true} {
		s, run := shortened(t, votes.Algorithm(votes.Silent), minorities)
		k := fewest(run, s.N)
		if (2*k <= s.N) != minorities {
			t.Errorf("minorities %v: %d of %d members are up", minorities, k, s.N)
		}
	}
	v := finding(t, votes.Algorithm(votes.Silent), Config{Seed: 1, Runs: 200, Workers: 2})
	if v.Property != check.Deadlock || v.N != 3 || !v.Replayed || v.Check.Crash != 1 || v.Check.Recover != 1 {
		t.Errorf("%s, n=%d, replayed %v: %s %v", v.Property, v.N, v.Replayed, v.Reason, v.Trace)
	}
}
