package sigma

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// after lets a model of four servers and two clients begin with a run in
// testdata, after which nobody exits, and up to two servers forget.
func after(file string) func(*check.Config) {
	return func(c *check.Config) {
		begin(c, file, 4)
		c.Stay, c.Amnesia, c.Timers = true, 2, check.NeverFire
		c.Properties = []string{"all", check.Kept}
	}
}

// begin lets a model of n servers begin with a run in testdata.
func begin(c *check.Config, file string, n int) {
	f, err := os.Open("testdata/" + file)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if c.Prefix, err = (scenario.Names{Members: n, Clients: true}).Parse(f); err != nil {
		panic(err)
	}
	c.N = n
}

func spaced(c *check.Config)    { c.Spaced = 1 }
func noRefresh(c *check.Config) { c.Options = map[string]int64{"refresh": 0} }
func exclusive(c *check.Config) { c.Properties = []string{check.Exclusion} }
func oneLoss(c *check.Config)   { c.Amnesia = 1 }
func three(c *check.Config)     { c.Amnesia = 3 }

// A holder outlives as many losses as one likes when each is made up for before
// the next one. Two at once are too many for four servers, and so are two one
// after the other when the holder does not ask again.
func TestSpacedLosses(t *testing.T) {
	for _, c := range []struct {
		name     string
		changes  []func(*check.Config)
		violated string // property
		steps    int    // after the beginning
	}{
		{"two, spaced", []func(*check.Config){after("waiting.txt"), spaced}, "", 0},
		{"three, spaced", []func(*check.Config){after("waiting.txt"), spaced, three}, "", 0},
		{"one, while the first messages still travel", []func(*check.Config){after("inside.txt"), spaced, oneLoss}, "", 0},
		{"two at once eject", []func(*check.Config){after("waiting.txt")}, check.Kept, 4},
		{"two at once let two in", []func(*check.Config){after("waiting.txt"), exclusive}, check.Exclusion, 8},
		{"two without refresh eject", []func(*check.Config){after("waiting.txt"), spaced, noRefresh}, check.Kept, 5},
		{"two without refresh let two in", []func(*check.Config){after("waiting.txt"), spaced, noRefresh, exclusive}, check.Exclusion, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := model(4, nil)
			for _, change := range c.changes {
				change(&k)
			}
			if k.Amnesia == 1 {
				lane.CI.Need(t, "40 000 states")
			}
			if k.Amnesia > 2 && !lane.Long.Runs() {
				t.Skip("SKIPPED: a million states take ten seconds; TEST_LANE=long explores them")
			}
			v, err := check.Run(Algorithm, k)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d states, %s", v.Verdict, v.States, v.Bounds)
			switch {
			case c.violated == "" && v.Verdict != check.Holds:
				t.Errorf("%s: %s, want it to hold\n%s\n%v", v.Verdict, v.Reason, v.Bounds, v.Trace)
			case c.violated != "" && (v.Property != c.violated || len(v.Trace) != len(k.Prefix)+c.steps):
				t.Errorf("%s: %s after %d steps, want %s violated after %d", v.Verdict, v.Property, len(v.Trace),
					c.violated, len(k.Prefix)+c.steps)
			}
		})
	}
}

// With one server of four that drains, whenever it begins to, everybody enters and
// leaves; with two nobody can, as with two silent ones.
func TestDrainExplored(t *testing.T) {
	for _, c := range []struct {
		drained int
		timers  check.Timers // no deadlock is sought where they never fire
		want    check.Result
	}{{1, check.NeverFire, check.Holds}, {1, check.AnyMoment, check.Holds}, {2, check.AnyMoment, check.Violated}} {
		t.Run(fmt.Sprintf("%d, timers %s", c.drained, c.timers), func(t *testing.T) {
			if c.timers == check.AnyMoment && !lane.Long.Runs() {
				t.Skip("SKIPPED: a million states take ten seconds; TEST_LANE=long explores them")
			}
			k := model(4, nil)
			after("waiting.txt")(&k)
			k.Stay, k.Amnesia, k.Drain, k.Timers, k.Properties = false, 0, c.drained, c.timers, nil
			v, err := check.Run(Algorithm, k)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %d states", v.Verdict, v.States)
			if v.Verdict != c.want || c.want == check.Violated && v.Property != check.Deadlock {
				t.Errorf("%s: %s, want %s\n%s\n%v", v.Verdict, v.Property, c.want, v.Bounds, v.Trace)
			}
		})
	}
}

// refreshEdits are the ways to refresh wrongly.
var refreshEdits = []mutant.Replacement{
	mutant.Edit("refresh: the support counts before its RESPONSE",
		"c.rerequest(j, Inside, out)",
		"s.response = response{request: c.me(), serial: s.given + 1}\n\t\tc.rerequest(j, Inside, out)"),
	mutant.Edit("refresh: under a new timestamp",
		"c.rerequest(j, Inside, out)",
		"c.last = fresh(c.last, now)\n\t\tc.time = c.last\n\t\tc.rerequest(j, Inside, out)"),
	mutant.Edit("refresh: the incarnation does not matter",
		`if s.inc == 0 || m.Inc < s.inc {
		return // from before we lost our lease, or from a life that is over
	}
	c.onIncarnation(j, m.Inc, now, out)`, "if s.inc == 0 {\n\t\treturn\n\t}"),
	mutant.Edit("refresh: a holder does not ask again", "c.rerequest(j, Inside, out)", ""),
	mutant.Edit("refresh: the stage is forgotten", "given, Stage: s}", "given}"),
	mutant.Edit("refresh: a waiter is not asked to give back",
		"out.Send(e.client, Message{Kind: Recall, Time: e.time, Inc: s.inc, Serial: e.serial})", ""),
	mutant.Edit("refresh: a waiter gives nothing back",
		"c.yield(j, m.Serial, out)\n\t\ts.response = response{}", ""),
	mutant.Edit("refresh: a waiter goes on counting what it gave back",
		"c.yield(j, m.Serial, out)\n\t\ts.response = response{}", "c.yield(j, m.Serial, out)"),
}

// The model of TestSpacedLosses alone finds what is wrong with a refresh.
func TestRefreshMutants(t *testing.T) {
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			explore(Algorithm, 4, after("waiting.txt"), spaced),
			explore(Algorithm, 4, after("waiting.txt"), spaced, func(c *check.Config) { c.Amnesia, c.Suspect = 1, 1 }),
		},
		Outside: outside("LiteralClient", "LiteralServer", "Client", "Server", "queue", "waiter", "rank", "view", "gossip", "newGossip", "share", "shortlist", "choice", "keeps", "alone", "newWaiter", "newLiteral", "newDefault", "thrift",
			"algorithm", "request", "count", "fresh", "setCheckTimer"),
		Replace: refreshEdits,
	})
}

// longHolds is a run with holds that last many losses.
func longHolds(n, spaced int, changes ...func(*sim.Config)) sim.Config {
	c := sim.Config{
		Config: protocol.Config{N: n, Options: map[string]int64{}}, Clients: 6, Entries: []int{2}, Seed: 1,
		Think: sim.Exponential(time.Second), Hold: sim.Constant(3 * time.Second), Delay: sim.Exponential(time.Millisecond),
		AmnesiaEvery: 2 * time.Millisecond, Spaced: spaced, Patience: 2_000_000,
	}
	for _, f := range changes {
		f(&c)
	}
	return c
}

// As many losses at a time as the budget allows, one after the other, eject nobody.
// One more at a time does, and so do those within the budget where nobody asks again.
func TestLongHolds(t *testing.T) {
	for _, c := range []struct {
		n, spaced int
		refresh   int64
	}{{4, 1, 1}, {7, 2, 1}, {10, 3, 1}, {4, 2, 1}, {7, 3, 1}, {4, 1, 0}, {7, 2, 0}} {
		k := longHolds(c.n, c.spaced)
		k.Options["refresh"] = c.refresh
		r, err := sim.Run(Algorithm, k)
		if err != nil {
			t.Fatal(err)
		}
		m := int(Algorithm.Option(k.Config, "quorum"))
		within := c.spaced <= 2*m-c.n-1 && c.refresh == 1
		t.Logf("n=%d, %d losses at a time, refresh=%d: %d holds, %d losses, %d ejected, %d violations", c.n, c.spaced,
			c.refresh, r.Entries, r.Amnesias, r.Ejected, r.ViolationCount)
		if within && (r.Ejected > 0 || r.ViolationCount > 0 || r.Entries != 12) {
			t.Errorf("n=%d, %d losses at a time: %d holds, %d ejected, %v", c.n, c.spaced, r.Entries, r.Ejected, r.Violations)
		}
		if within && r.Amnesias < 40*int(r.Entries) {
			t.Errorf("n=%d: only %d losses in %d holds", c.n, r.Amnesias, r.Entries)
		}
		if !within && r.Ejected == 0 {
			t.Errorf("n=%d, %d losses at a time, refresh=%d: nobody is ejected", c.n, c.spaced, c.refresh)
		}
	}
}

// Tokens grow also where holds outlive many restarts.
func TestLongHoldsFenced(t *testing.T) {
	r, err := sim.Run(Algorithm, longHolds(4, 1, func(c *sim.Config) {
		c.Options = map[string]int64{"fence": FenceOn, "eps": int64(time.Millisecond)}
		c.AmnesiaEvery, c.ClockOffset, c.Entries = 20*time.Millisecond, time.Millisecond, []int{20}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if r.Entries != 120 || r.Ejected > 0 || r.ViolationCount > 0 {
		t.Errorf("%d holds, %d ejected, %v", r.Entries, r.Ejected, r.Violations)
	}
	if r.Amnesias < 20*int(r.Entries) {
		t.Errorf("only %d losses in %d holds", r.Amnesias, r.Entries)
	}
}

// All servers restart at once, again and again. When they drain until those who
// hold have left, nobody loses anything; else holders do.
func TestDrainedRestarts(t *testing.T) {
	for _, drain := range []bool{true, false} {
		c := longHolds(4, 0, func(c *sim.Config) {
			c.AmnesiaEvery, c.Think, c.Entries = 0, sim.Constant(0), []int{20}
			c.Hold = sim.Constant(50 * time.Millisecond)
		})
		for k := range 20 {
			for j := range protocol.ID(4) {
				at, server := time.Duration(1+k)*200*time.Millisecond, []protocol.ID{j}
				if drain {
					c.Faults = append(c.Faults, scenario.Step{At: at, Verb: scenario.Drain, Procs: server})
				}
				at += 80 * time.Millisecond
				c.Faults = append(c.Faults, scenario.Step{At: at, Verb: scenario.Amnesia, Procs: server})
			}
		}
		r, err := sim.Run(Algorithm, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("drain %t: %d restarts, %d holds, %d ejected, %d violations", drain, r.Amnesias, r.Entries, r.Ejected, r.ViolationCount)
		if r.Amnesias != 80 || r.Entries != 120 {
			t.Errorf("drain %t: %d restarts, %d holds", drain, r.Amnesias, r.Entries)
		}
		if lost := r.Ejected + r.ViolationCount; drain != (lost == 0) {
			t.Errorf("drain %t: %d ejected, %v", drain, r.Ejected, r.Violations)
		}
	}
}
