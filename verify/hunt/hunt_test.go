package hunt

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/verify/world"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/reliable"
)

func mustRun[M any](t *testing.T, a protocol.Algorithm[M], c Config) Result {
	t.Helper()
	r, err := Run(a, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// finding is the only violation of a hunt that must have one.
func finding[M any](t *testing.T, a protocol.Algorithm[M], c Config) Violation {
	t.Helper()
	r := mustRun(t, a, c)
	if len(r.Violations) != 1 {
		t.Fatalf("seed %d: %d violations in %d runs, want one", c.Seed, len(r.Violations), r.Runs)
	}
	v := r.Violations[0]
	t.Logf("seed %d: %s in run %d, %d steps of %d: %s", c.Seed, v.Property, v.Run, len(v.Trace), v.Found, v.Reason)
	return v
}

// Every form that promises to hold does, whatever is drawn.
func TestNothingIsFound(t *testing.T) {
	lane.CI.Need(t, "hunts that find nothing")
	t.Run("ricart-agrawala", func(t *testing.T) { clean(t, ricartagrawala.Algorithm) })
	t.Run("printed", func(t *testing.T) { clean(t, ricartagrawala.Printed) })
	t.Run("suzuki-kasami", func(t *testing.T) { clean(t, suzukikasami.Algorithm) })
	t.Run("sigma", func(t *testing.T) { clean(t, sigma.Algorithm) })
	t.Run("sigma, promises", func(t *testing.T) { clean(t, sigma.Algorithm, "promise") })
	t.Run("sigma, promises, thrifty", func(t *testing.T) { clean(t, sigma.Algorithm, "promise", "thrifty") })
	t.Run("sigma, promises told directly", func(t *testing.T) { clean(t, sigma.Algorithm, "promise", "direct") })
	t.Run("sigma, promises, linked", func(t *testing.T) { clean(t, reliable.Wrap(sigma.Algorithm), "promise") })
	t.Run("literal", func(t *testing.T) { clean(t, sigma.Literal) })
	t.Run("ricart-agrawala, linked", func(t *testing.T) { clean(t, reliable.Wrap(causal.Of(ricartagrawala.Algorithm))) })
	t.Run("suzuki-kasami, linked", func(t *testing.T) { clean(t, reliable.Wrap(suzukikasami.Algorithm)) })
	t.Run("sigma, linked", func(t *testing.T) { clean(t, reliable.Wrap(sigma.Algorithm)) })
	t.Run("literal, linked", func(t *testing.T) { clean(t, reliable.Wrap(sigma.Literal)) })
}

// clean hunts with some options on.
func clean[M any](t *testing.T, a protocol.Algorithm[M], on ...string) {
	const runs = 100
	c := Config{Seed: 1, Runs: runs, Workers: 2}
	c.Options = map[string]int64{}
	for _, o := range on {
		c.Options[o] = 1
	}
	r := mustRun(t, a, c)
	for _, v := range r.Violations {
		t.Errorf("run %d: %s: %s\n%s", v.Run, v.Property, v.Reason, strings.Join(v.Trace, "\n"))
	}
	if r.Runs != runs || r.Entries < 10*r.Runs || r.Events < 5*r.Entries {
		t.Errorf("%d runs, %d entries, %d events: do they do anything?", r.Runs, r.Entries, r.Events)
	}
}

// One member more than the budget is enough, and what is found is as short as what
// Theorem 4 of Sigma's paper gives: 2m+1 steps of each client, and the losses.
func TestBreak(t *testing.T) {
	for _, c := range []struct {
		n, clients, m int
		seed          uint64
	}{{3, 4, 2, 1}, {4, 6, 3, 1}, {5, 5, 4, 1}, {7, 20, 5, 1}, {10, 5, 7, 1}}[:lane.Of(t, "sizes", 2, 5, 5)] {
		v := finding(t, sigma.Algorithm, Config{
			Config: protocol.Config{N: c.n}, Clients: c.clients, Seed: c.seed, Runs: 4000, Break: true, Workers: 2,
		})
		shared := 2*c.m - c.n
		least := 2*(2*c.m+1) + shared
		if v.Property != check.Exclusion || !v.Replayed || v.Budget != shared {
			t.Errorf("n=%d: %s, replayed %t, budget %d; want exclusion with %d", c.n, v.Property, v.Replayed, v.Budget, shared)
		}
		if len(v.Trace) < least || len(v.Trace) > least+5 {
			t.Errorf("n=%d: %d steps, want %d to %d\n%s", c.n, len(v.Trace), least, least+5, strings.Join(v.Trace, "\n"))
		}
	}
}

// The number of workers changes nothing, nor does it matter where a hunt begins.
func TestRunIsAValue(t *testing.T) {
	c := Config{Config: protocol.Config{N: 4}, Seed: 3, Runs: 300, Beyond: 1}
	one := mustRun(t, sigma.Algorithm, c)
	c.Workers = 3
	several := mustRun(t, sigma.Algorithm, c)
	several.Seconds, several.RunsPerS = one.Seconds, one.RunsPerS
	if !reflect.DeepEqual(one, several) {
		t.Errorf("one worker: %+v\nthree: %+v", one, several)
	}
	if len(one.Violations) != 1 {
		t.Fatalf("%d violations: choose another seed", len(one.Violations))
	}
	c.First, c.Runs = one.Violations[0].Run, 1
	alone := mustRun(t, sigma.Algorithm, c)
	if !reflect.DeepEqual(alone.Violations, one.Violations) {
		t.Errorf("run %d alone: %+v\namong others: %+v", c.First, alone.Violations, one.Violations)
	}
}

// What walks and simulations do is what the checker's model does: it takes each of
// their steps, in the same words. With seeds 10 and 11 late copies come to members that have
// forgotten twice.
func TestRunsAreTheCheckers(t *testing.T) {
	t.Run("ricart-agrawala", func(t *testing.T) { retaken(t, ricartagrawala.Algorithm, 3) })
	t.Run("suzuki-kasami", func(t *testing.T) { retaken(t, suzukikasami.Algorithm, 3) })
	t.Run("sigma", func(t *testing.T) { retaken(t, sigma.Algorithm, 4) })
	t.Run("literal", func(t *testing.T) { retaken(t, sigma.Literal, 4) })
	t.Run("ricart-agrawala, linked", func(t *testing.T) { retaken(t, reliable.Wrap(ricartagrawala.Algorithm), 3) })
	t.Run("sigma, linked", func(t *testing.T) { retaken(t, reliable.Wrap(sigma.Algorithm), 4) })
	t.Run("literal, linked", func(t *testing.T) { retaken(t, reliable.Wrap(sigma.Literal), 4) })
}

// beginning is as much of a run as a check has budgets for.
func beginning(run []world.Action) []world.Action {
	const most, faults = 150, 15
	count := map[scenario.Verb]int{}
	for k, c := range run[:min(most, len(run))] {
		if count[c.Verb]++; count[c.Verb] > faults && c.Fault() {
			return run[:k]
		}
	}
	return run[:min(most, len(run))]
}

func retaken[M any](t *testing.T, bare protocol.Algorithm[M], n int) {
	a := protocol.Erase(bare)
	seeds, first, timed := []uint64{5, 10, 11, 12}, 0, 0
	if a.Stale != nil && !lane.CI.Adds(t, "the first run, which takes longer than all others") {
		first = 1 // a check takes long over what may always arrive again
	}
	for _, seed := range seeds {
		timed += retakenFrom(t, a, n, seed, first)
	}
	if all := len(seeds) * (runsOfSeed - first); timed < all/6 || timed > all/2 {
		t.Errorf("%d of %d runs are timed", timed, all)
	}
}

// runsOfSeed is how many runs of a seed there are.
const runsOfSeed = 15

// retakenFrom retakes the runs of one seed, and returns how many of them are timed.
func retakenFrom(t *testing.T, a protocol.Algorithm[any], n int, seed uint64, first int) (timed int) {
	c := Config{Config: protocol.Config{N: n}, Seed: seed}
	if a.Users == protocol.Clients {
		// A CHECK may arrive again, which its line does not say: the checker follows
		// both, so that with some of them a prefix has very many ends.
		c.Clients, c.Options = 3, map[string]int64{"check": 0}
	}
	for run := first; run < runsOfSeed; run++ {
		p := c.draw(a.Info, a.Unsettled != nil, int64(run), 0)
		var steps []world.Action
		sys := p.system
		if p.timed {
			timed++
			m, recorded, err := newSimulators(a).record(a, &p)
			if err != nil {
				t.Fatal(err)
			}
			steps, sys = recorded, m.sys
		} else {
			w := newWalker(newModel(a, p.system), &p)
			w.walk()
			steps = w.run
		}
		if sys.Clients > 64 {
			continue // crashed and replaced so often: more than a check has
		}
		x := &reducer{model: newModel(a, sys), run: beginning(steps), property: check.Exclusion}
		v := Violation{Property: check.Exclusion}
		h := &hunter{alg: a}
		h.render(&v, x)
		// That nothing is violated is as it should be; an error says which step is not
		// possible.
		if v.History == nil || v.Reason != "" || len(v.History.Steps) != len(v.Trace) || len(v.Trace) == 0 {
			t.Fatalf("seed %d, run %d: %s\n%s", seed, run, v.Reason, strings.Join(v.Trace, "\n"))
		}
	}
	return timed
}

// Tokens that are not written back, or restart from nothing, are found where clocks
// run, and package sim replays what is left.
func TestTokens(t *testing.T) {
	for _, fence := range []int64{sigma.FenceNoFloor, sigma.FencePiggyback} {
		options := map[string]int64{"fence": fence}
		v := finding(t, sigma.Algorithm, Config{Config: protocol.Config{N: 4, Options: options}, Seed: 1, Runs: 3000, Workers: 2})
		if !v.Timed || v.Property != history.Inversion && v.Property != history.Reuse {
			t.Errorf("fence %d: %s, timed %t", fence, v.Property, v.Timed)
		}
		r, err := sim.Run(sigma.Algorithm, v.Simulation)
		if err != nil || r.ViolationsOf[v.Property] == 0 {
			t.Errorf("fence %d: the simulation has %v, %v", fence, r.Violations, err)
		}
	}
}

// A hunt ends when it is told to.
func TestEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := Config{Seed: 1, Done: ctx.Done(), Workers: 2}
	c.Progress = func(p Progress) {
		if p.Runs > 10 {
			cancel()
		}
	}
	defer cancel()
	if r := mustRun(t, ricartagrawala.Algorithm, c); r.Runs <= 10 || len(r.Violations) > 0 {
		t.Errorf("%+v", r)
	}
	if r := mustRun(t, ricartagrawala.Algorithm, Config{For: 100 * time.Millisecond}); r.Runs == 0 {
		t.Errorf("%+v", r)
	}
}

// A hunt that is to end while it shortens a run gives up at once, and returns the run
// as it is by then. What it costs is counted in processes that are made.
func TestEndWhileShortening(t *testing.T) {
	made := 0
	counted := sigma.Algorithm
	counted.New = func(id protocol.ID, c protocol.Config) protocol.Process[sigma.Message] {
		made++
		return sigma.Algorithm.New(id, c)
	}
	c := Config{Config: protocol.Config{N: 4}, Clients: 5, Seed: 1, Runs: 1000, Beyond: 1, Workers: 1}
	c.Progress = func(Progress) { made = 0 } // the last one is when it begins to shorten
	whole := finding(t, counted, c)
	reducing := made

	done := make(chan struct{})
	c.Done = done
	c.Progress = func(p Progress) {
		if made = 0; p.Reducing {
			close(done)
		}
	}
	v := finding(t, counted, c)
	if made > reducing/100 {
		t.Errorf("%d processes made after the end, and %d without one", made, reducing)
	}
	if !v.Replayed || len(v.Trace) <= len(whole.Trace) {
		t.Errorf("%d steps, replayed: %t; without an end there were %d", len(v.Trace), v.Replayed, len(whole.Trace))
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{}, "without end"},
		{Config{Runs: 1, Clients: 3}, "its users are its members"},
		{Config{Runs: 1, Config: protocol.Config{N: 65}}, "65 members: want 1 to 64"},
		{Config{Runs: -1}, "want no negative number"},
		{Config{For: -1}, "want a positive duration"},
		{Config{Runs: 1, Workers: -1}, "-1 workers"},
		{Config{Runs: 1, Break: true}, "no budget of memory losses"},
		{Config{Runs: 1, Beyond: -1}, "-1 members beyond"},
		{Config{Runs: 1, Config: protocol.Config{N: 2, Options: map[string]int64{"x": 1}}}, `no option "x"`},
	} {
		if _, err := Run(ricartagrawala.Algorithm, c.c); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.c, err, c.want)
		}
	}
	c := Config{Runs: 1, Config: protocol.Config{N: 4}, Beyond: 4}
	if _, err := Run(sigma.Algorithm, c); err == nil || !strings.Contains(err.Error(), "beyond a budget of 1: there are only 4") {
		t.Errorf("%v", err)
	}
}
