package sigma_test

import (
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/hunt"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// A sleepwalker goes on after a pause without a look at its leases.
type sleepwalker struct {
	protocol.Process[sigma.Message]
}

func (s sleepwalker) Step(ev protocol.Event[sigma.Message], out *protocol.Out[sigma.Message]) {
	if ev.Kind != protocol.Suspect {
		s.Process.Step(ev, out)
	}
}

// A client whose machine stands still for longer than its leases is out when it goes on. The
// three drivers catch one that does not look.
func TestPause(t *testing.T) {
	broken := sigma.Algorithm
	broken.New = func(id protocol.ID, c protocol.Config) protocol.Process[sigma.Message] {
		p := sigma.Algorithm.New(id, c)
		if id < protocol.ID(c.N) {
			return p
		}
		return sleepwalker{p}
	}
	broken.Unsettled, broken.Invariants, broken.Stale, broken.Confluent, broken.MapState, broken.MapMsg = nil, nil, nil, nil, nil, nil
	for name, a := range map[string]protocol.Algorithm[sigma.Message]{"right": sigma.Algorithm, "broken": broken} {
		want := 0
		if name == "broken" {
			want = 1
		}
		two := protocol.Config{N: 2}
		v, err := check.Run(a, check.Config{
			Config: two, Clients: 2, Pause: 1, Timers: check.NeverFire, Properties: []string{check.Exclusion},
		})
		if err != nil || (v.Verdict == check.Violated) != (want > 0) || want == 0 && v.Verdict != check.Holds {
			t.Errorf("%s: check: %s, %v", name, v.Reason, err)
		}
		found := 0
		for seed := range uint64(10) {
			r, err := sim.Run(a, sim.Config{
				Config: protocol.Config{N: 4}, Clients: 6, Entries: []int{50}, Seed: seed, Think: sim.Exponential(20 * time.Millisecond),
				Hold: sim.Exponential(20 * time.Millisecond), Lease: 20 * time.Millisecond, PauseEvery: 50 * time.Millisecond,
				FaultsUntil: time.Second, Patience: 100_000,
			})
			if err != nil {
				t.Fatal(err)
			}
			found += int(r.ViolationsOf[history.Exclusion])
		}
		if (found > 0) != (want > 0) {
			t.Errorf("%s: sim: %d are inside beside another one", name, found)
		}
		r, err := hunt.Run(a, hunt.Config{Config: two, Clients: 2, Seed: 1, Runs: 300, Workers: 1})
		if err != nil || len(r.Violations) != want { // with leases that lapse by themselves: see package hunt
			t.Errorf("%s: hunt: %+v, %v", name, r.Violations, err)
		}
	}
}

// Leases that lapse while a client pauses are losses: beside them no server may forget within the budget, though the
// client has not heard of them yet.
func TestPauseIsALoss(t *testing.T) {
	w, err := check.NewWalk(sigma.Algorithm, check.Config{
		Config: protocol.Config{N: 4}, Clients: 1, Amnesia: 1, Pause: 1, Spaced: 1, Timers: check.NeverFire,
	})
	if err != nil {
		t.Fatal(err)
	}
	forgets := func() bool {
		return slices.ContainsFunc(w.Possible(), func(s scenario.Step) bool { return s.Verb == scenario.Amnesia })
	}
	for _, verb := range []scenario.Verb{scenario.Try, scenario.Deliver, scenario.Deliver, scenario.Pause} {
		if !take(t, w, verb) || !forgets() {
			t.Fatalf("after %s no server may forget", verb)
		}
	}
	if !take(t, w, scenario.Lapse) || forgets() {
		t.Error("a server may forget beside a lease that lapsed while the client pauses")
	}
}

// take takes the first possible step with a verb, and reports whether there is one.
func take(t *testing.T, w *check.Walk, verb scenario.Verb) bool {
	t.Helper()
	for _, s := range w.Possible() {
		if s.Verb == verb && (verb != scenario.Pause || s.Procs[0] == 4) {
			if _, err := w.Take(s); err != nil {
				t.Fatal(err)
			}
			return true
		}
	}
	return false
}
