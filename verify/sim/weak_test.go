package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/verify/world"
	"github.com/poundlock/poundlock/wrap/consensus"
	"github.com/poundlock/poundlock/wrap/consensus/raft"
)

// weakRun simulates an algorithm in a nice run, or in one with all faults that it tolerates.
func weakRun[M any](t *testing.T, a protocol.Algorithm[M], n int, storms bool, seed uint64) sim.Result {
	t.Helper()
	c := sim.Config{
		Config: protocol.Config{N: n}, Entries: []int{30}, Operations: []int{3}, Seed: seed,
		Think: sim.Constant(10 * time.Millisecond), Hold: sim.Constant(time.Millisecond),
	}
	if storms {
		c.Delay, c.Think = sim.Exponential(time.Millisecond), sim.Exponential(20*time.Millisecond)
		c.CrashEvery, c.RecoverEvery, c.FaultsUntil = 200*time.Millisecond, 100*time.Millisecond, time.Second
		c.PauseEvery, c.PartitionEvery, c.Detect = 50*time.Millisecond, 70*time.Millisecond, 4*time.Millisecond
	}
	r, err := sim.Run(a, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// In a nice run an operation has its outcome after two steps, and costs what the paper says.
func TestWeakCosts(t *testing.T) {
	const n = 5
	for _, a := range []protocol.Algorithm[wme.Message]{wme.First, wme.Second} {
		r := weakRun(t, a, n, false, 1)
		if r.ViolationCount > 0 || r.Entries != 30*n || r.OutcomeMS.Count != 90*n || r.OutcomeMS.Max != 2 || r.OutcomeMS.Mean != 2 {
			t.Errorf("%s: %d entries, %d violations %q, outcomes %+v", a.Name, r.Entries, r.ViolationCount, r.Violations, r.OutcomeMS)
		}
		acks := n * (n - 1)
		if a.Name == wme.Second.Name {
			acks = n - 1
		}
		if got := r.MessagesByKind; got["INVOKE"] != 90*n*(n-1) || got["ACK"] > 90*n*acks || got["ACK"] < (90*n-1)*acks || got["NEWEP"] > 0 {
			t.Errorf("%s: messages %v", a.Name, got)
		}
	}
}

// Through crashes, returns, pauses and partitions, which are suspected by mistake, no property
// falls, and everybody who lives is done at the end; with the service, and over channels alone.
func TestWeakStorms(t *testing.T) {
	runs := func(seed uint64) map[string]sim.Result {
		return map[string]sim.Result{
			"wme-1":           weakRun(t, wme.First, 5, true, seed),
			"wme-2":           weakRun(t, wme.Second, 5, true, seed),
			"wme-1 and paxos": weakRun(t, consensus.With(wme.First), 5, true, seed),
			"wme-2 and paxos": weakRun(t, consensus.With(wme.Second), 5, true, seed),
			"wme-1 and raft":  weakRun(t, raft.With(wme.First), 5, true, seed),
			"wme-2 and raft":  weakRun(t, raft.With(wme.Second), 5, true, seed),
		}
	}
	var ejected, returned uint64
	for seed := range lane.Of[uint64](t, "seeds", 6, 20, 20) {
		all := runs(seed)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			r := all[name]
			if r.ViolationCount > 0 {
				t.Errorf("%s, seed %d: %q", name, seed, r.Violations)
			}
			ejected += r.Ejected
			returned += uint64(r.Recoveries)
		}
	}
	if ejected == 0 || returned == 0 {
		t.Errorf("%d users were ejected, %d members came back: these runs show nothing", ejected, returned)
	}
	t.Logf("%d users were ejected, %d members came back", ejected, returned)
}

// A member that came back counts as crashed until it takes part again: others crash only where a majority is
// left without it. Where it counted at once a majority would soon be lost, and everybody would wait for ever.
func TestReturns(t *testing.T) {
	const members = 3
	amiss, returned := map[bool]int{}, 0
	for seed := range uint64(10) {
		for _, counts := range []bool{true, false} {
			a := wme.First
			if !counts {
				a.Unsettled = nil
			}
			r := mustRun(t, a, sim.Config{
				Config: protocol.Config{N: members}, Entries: []int{30}, Operations: []int{3}, Seed: seed,
				Think: sim.Exponential(20 * time.Millisecond), Delay: sim.Exponential(time.Millisecond),
				CrashEvery: 3 * time.Millisecond, RecoverEvery: 2 * time.Millisecond, Detect: 4 * time.Millisecond,
				FaultsUntil: 300 * time.Millisecond,
			})
			if r.ViolationCount > 0 {
				amiss[counts]++
			}
			returned += r.Recoveries
		}
	}
	if amiss[true] > 0 || amiss[false] == 0 || returned < 100 {
		t.Errorf("%d members came back; runs with violations: %d, without the rule %d", returned, amiss[true], amiss[false])
	}
}

// storms makes short runs of five members that crash, pause and come back all the time, and returns in how many
// something is amiss.
func storms[M any](t *testing.T, a protocol.Algorithm[M]) (amiss int) {
	t.Helper()
	const members = 5
	for seed := range uint64(50) {
		r := mustRun(t, a, sim.Config{
			Config: protocol.Config{N: members}, Entries: []int{20}, Operations: []int{3}, Seed: seed,
			Think: sim.Exponential(20 * time.Millisecond), Delay: sim.Exponential(time.Millisecond),
			CrashEvery: 7 * time.Millisecond, RecoverEvery: 4 * time.Millisecond, PauseEvery: 20 * time.Millisecond,
			Detect: 4 * time.Millisecond, FaultsUntil: 300 * time.Millisecond,
		})
		if r.ViolationCount > 0 {
			amiss++
		}
	}
	return amiss
}

// Who asks for incarnations hears of each new one, also where nobody has noticed the crash before it: else one that
// waits for an answer of the life before waits for ever. And who resumes with an instance that is decided hears of
// that, though all others have long ago.
func TestNewLives(t *testing.T) {
	unheard := consensus.With(wme.First)
	unheard.Incarnations = false
	if k := storms(t, unheard); k == 0 {
		t.Error("nobody misses news of new lives")
	}
	if k, l := storms(t, wme.First), storms(t, consensus.With(wme.First)); k+l > 0 {
		t.Errorf("%d runs with the service and %d without it end with violations", k, l)
	}
}

// A skipper leaves out some of what its copy should execute.
type skipper struct {
	protocol.Process[wme.Message]
	left *int
}

func (p skipper) Step(ev protocol.Event[wme.Message], out *protocol.Out[wme.Message]) {
	p.Process.Step(ev, out)
	out.Effects = slices.DeleteFunc(out.Effects, func(e protocol.Effect[wme.Message]) bool {
		if e.Do == protocol.Invoke {
			*p.left--
		}
		return e.Do == protocol.Invoke && *p.left == 0
	})
}

// A copy that leaves one operation out is found.
func TestWeakJudged(t *testing.T) {
	left := 50
	a := wme.First
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[wme.Message] {
		return skipper{Process: wme.First.New(id, c), left: &left}
	}
	if r := weakRun(t, a, 3, false, 1); r.ViolationsOf[history.OneCopy] == 0 {
		t.Errorf("violations %v", r.ViolationsOf)
	}
}

// A copy that executes nothing any more is found, at the latest before the next user tries.
func TestWeakLags(t *testing.T) {
	a := wme.First
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[wme.Message] {
		if id < 2 {
			return wme.First.New(id, c)
		}
		return idler{wme.First.New(id, c)}
	}
	a.Unsettled = nil
	r := mustRun(t, a, sim.Config{Config: protocol.Config{N: 3}, Entries: []int{5, 5, 0}})
	if r.ViolationsOf[history.Lagging] == 0 || len(r.ViolationsOf) != 1 {
		t.Errorf("violations %v", r.ViolationsOf)
	}
}

// An idler executes nothing.
type idler struct{ protocol.Process[wme.Message] }

func (p idler) Step(ev protocol.Event[wme.Message], out *protocol.Out[wme.Message]) {
	p.Process.Step(ev, out)
	out.Effects = slices.DeleteFunc(out.Effects, func(e protocol.Effect[wme.Message]) bool { return e.Do == protocol.Invoke })
}

// An ejector ejects whoever issues an operation; or only where some suspicion was withdrawn before.
type ejector struct {
	protocol.Process[wme.Message]
	always   bool
	restored bool
}

func (p *ejector) Step(ev protocol.Event[wme.Message], out *protocol.Out[wme.Message]) {
	p.restored = p.restored || ev.Kind == protocol.Restore
	if ev.Kind == protocol.Issue && (p.always || p.restored) {
		out.Ejected()
		return
	}
	p.Process.Step(ev, out)
}

// Who is ejected without a suspicion, or after the last one has had its effect, is found.
func TestEjectedForNothing(t *testing.T) {
	for _, delay := range []sim.Dist{sim.Constant(time.Millisecond), sim.Exponential(time.Millisecond)} {
		for property, always := range map[string]bool{history.Groundless: true, history.OperationProgress: false} {
			a := wme.First
			a.New = func(id protocol.ID, c protocol.Config) protocol.Process[wme.Message] {
				return &ejector{Process: wme.First.New(id, c), always: always}
			}
			a.Unsettled = nil
			r := mustRun(t, a, sim.Config{
				Config: protocol.Config{N: 3}, Entries: []int{30}, Operations: []int{1}, Seed: 1, Delay: delay,
				Think: sim.Exponential(20 * time.Millisecond), PauseEvery: 50 * time.Millisecond, Detect: 4 * time.Millisecond,
				FaultsUntil: 300 * time.Millisecond,
			})
			if r.ViolationsOf[property] == 0 {
				t.Errorf("%d users were ejected, violations %v, want %s", r.Ejected, r.ViolationsOf, property)
			}
		}
	}
}

// What there is no object or no consensus for is refused like any other effect that there is none of.
func TestWeakEffects(t *testing.T) {
	const object, consensus = "has no copy of an object", "has no consensus"
	for _, c := range []struct {
		why string
		ask func(out *protocol.Out[note])
	}{
		{object, func(out *protocol.Out[note]) { out.Invoke("a", 1) }},
		{object, func(out *protocol.Out[note]) { out.Install("1") }},
		{object, func(out *protocol.Out[note]) { out.Outcome() }},
		{object, func(out *protocol.Out[note]) { out.Capture() }},
		{consensus, func(out *protocol.Out[note]) { out.Propose(0, note{}) }},
		{consensus, func(out *protocol.Out[note]) { out.Resume(1) }},
		{"asks for effect 99, which is none", func(out *protocol.Out[note]) {
			out.Effects = append(out.Effects, protocol.Effect[note]{Act: protocol.Act{Do: 99}})
		}},
	} {
		grab := grabber(noToken)
		a := toys(protocol.Members, func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
			if grab(id, ev, out); ev.Kind == protocol.Exit {
				c.ask(out)
			}
		})
		// An algorithm that has the one has not therefore the other.
		a.Weak, a.Consensus = c.why == consensus, c.why == object
		run := sim.Config{Config: protocol.Config{N: 1}, Entries: []int{1}}
		if a.Weak {
			run.Operations = []int{0}
		}
		r := mustRun(t, a, run)
		if r.ViolationCount != 1 || r.ViolationsOf[world.Model] != 1 || !strings.Contains(r.Violations[0], "p1 "+c.why) {
			t.Errorf("%v, want that it %s", r.Violations, c.why)
		}
	}
}

// One operation in each section is the default, and there may be none, and for each user another number.
func TestOperationsDefault(t *testing.T) {
	for _, c := range []struct {
		asked []int
		want  uint64
	}{{nil, 15}, {[]int{1}, 15}, {[]int{2}, 30}, {[]int{0}, 0}, {[]int{2, 0, 1}, 15}, {[]int{0, 0, 3}, 15}} {
		r := mustRun(t, wme.First, sim.Config{Config: protocol.Config{N: 3}, Entries: []int{5}, Operations: c.asked})
		if r.ViolationCount != 0 || r.Entries != 15 || r.OutcomeMS.Count != c.want {
			t.Errorf("operations %v: %d outcomes in %d sections, want %d; %v", c.asked, r.OutcomeMS.Count, r.Entries, c.want, r.Violations)
		}
	}
}

// Operations belong to a replicated object.
func TestOperationsRefused(t *testing.T) {
	for _, k := range []int{-1, 1} {
		if _, err := sim.Run(toys(protocol.Members, nil), sim.Config{Config: protocol.Config{N: 2}, Operations: []int{k}}); err == nil {
			t.Errorf("%d operations without an object are taken", k)
		}
	}
	for _, k := range []int{-1, 1_000_001} {
		_, err := sim.Run(wme.First, sim.Config{Config: protocol.Config{N: 2}, Operations: []int{k}})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(k)) {
			t.Errorf("%d operations: %v", k, err)
		}
	}
}

// A section with many operations is not stuck, however long others wait for its end; one without an outcome is.
func TestOutcomesAreProgress(t *testing.T) {
	c := sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{1, 1, 0}, Operations: []int{200}, Think: sim.Constant(time.Millisecond), Patience: 300,
	}
	if r := mustRun(t, wme.Second, c); r.ViolationCount != 0 || r.OutcomeMS.Count != 400 {
		t.Errorf("%d outcomes, %v", r.OutcomeMS.Count, r.Violations)
	}
	c.Patience = 3 // fewer than an operation takes
	if r := mustRun(t, wme.Second, c); r.ViolationsOf["stuck"] != 1 || !strings.Contains(r.Violations[0], "no entry and no outcome in 3 events, and p1") {
		t.Errorf("%v", r.Violations)
	}
}

// Who waits for an outcome is named.
func TestNoOutcome(t *testing.T) {
	grab := grabber(noToken)
	a := toys(protocol.Members, func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		if ev.Kind != protocol.Issue {
			grab(id, ev, out)
		}
	})
	a.Weak = true
	r := mustRun(t, a, sim.Config{Config: protocol.Config{N: 1}, Entries: []int{1}, Operations: []int{1}})
	if len(r.Violations) == 0 || !strings.HasSuffix(r.Violations[0], "stuck: nothing more will happen, and p1 waits") {
		t.Error(r.Violations)
	}
}
