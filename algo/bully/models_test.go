package bully

import (
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

func model(n, crashes, recoveries, mistakes int) check.Config {
	return check.Config{
		Config: protocol.Config{N: n}, Crash: crashes, Recover: recoveries, Suspect: mistakes, MaxMemory: 512 << 20,
		Properties: []string{"all"},
	}
}

// All live processes agree in the end on the highest of them, and each election ends. With
// two crashes and two recoveries it is not asked whether it ends: those states do not fit.
func TestHolds(t *testing.T) {
	finite := model(3, 2, 2, 0)
	finite.Properties = []string{check.Epochs, check.Agreement, "bully/follows"}
	algotest.Holds(t, Algorithm, []check.Config{
		model(3, 1, 0, 0), model(3, 1, 1, 0), model(3, 2, 1, 0), model(3, 1, 0, 1), model(3, 0, 0, 2),
		model(4, 1, 0, 0), model(4, 2, 0, 0),
	}, []check.Config{model(3, 1, 1, 1), finite})
}

// With a time-out that is too short a process leads before the OK comes: two leaders in five
// steps. Their epochs differ all the same, and no process goes back to an older one.
func TestTwoLeaders(t *testing.T) {
	c := model(3, 1, 0, 0)
	c.Timers, c.Properties = check.AnyMoment, []string{check.OneLeader}
	v, err := check.Run(Algorithm, c)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"crash p3", "suspect p1 p3", "timeout p1 0", "deliver p1 p2 ELECTION(1,p3)", "timeout p2 0"}
	if v.Verdict != check.Violated || v.Property != check.OneLeader || !slices.Equal(v.Trace, want) {
		t.Errorf("%s is %s by %q, want it violated by %q", v.Property, v.Verdict, v.Trace, want)
	}
	c.Properties = []string{check.Epochs, check.Agreement}
	if v, err = check.Run(Algorithm, c); err != nil || v.Verdict != check.Holds {
		t.Errorf("%s is %s: %s, %v", v.Property, v.Verdict, v.Reason, err)
	}
	// With a time-out that is long enough there is one leader at a time, unless the highest
	// one comes back.
	c.Timers, c.Properties = check.Synchronous, []string{check.OneLeader}
	if v, err = check.Run(Algorithm, c); err != nil || v.Verdict != check.Holds {
		t.Errorf("%s is %s: %s, %v", v.Property, v.Verdict, v.Reason, err)
	}
}

var options = algotest.Options{Exhaustive: []check.Config{model(2, 1, 1, 0), model(3, 1, 0, 0)}}

func TestConformance(t *testing.T) { algotest.Run(t, Algorithm, options) }
func FuzzRead(f *testing.F)        { algotest.FuzzRead(f, Algorithm, options) }
func FuzzLoadState(f *testing.F)   { algotest.FuzzLoadState(f, Algorithm, options) }

func TestMutants(t *testing.T) {
	all := func(c check.Config) mutant.Check {
		c.MaxMemory = 16 << 20 // a mutant may have rounds without end
		return mutant.Decided(Algorithm, c)
	}
	story := func(f func() string) mutant.Check {
		return func() (string, error) { return f(), nil }
	}
	step := func(in protocol.Input, m Message) func() {
		return func() {
			s := system(2)
			suspect(s, 0, in.From)
			var out protocol.Out[Message]
			s.Procs[0].Step(protocol.Event[Message]{Input: in, Msg: m}, &out)
		}
	}
	mutant.Test(t, mutant.Config{
		Share: 3,
		Checks: []mutant.Check{
			all(model(3, 1, 0, 0)),
			all(model(2, 1, 1, 0)),
			all(model(3, 1, 1, 0)),
			all(model(3, 1, 0, 1)),
			story(counts), story(recovered), story(doubted), story(overtaken), story(stale), story(patience), story(partition),
			mutant.Panics("bully: ", func() { system(2).Step(0, protocol.Input{Kind: protocol.Timeout}) }),
			mutant.Panics("bully: ", step(protocol.Input{Kind: protocol.Timeout, Timer: 1, From: 1}, Message{})),
			mutant.Panics("bully: ", step(protocol.Input{Kind: protocol.Receive, From: 1}, Message{Epoch: protocol.Epoch{Round: 1, Leader: 2}})),
			all(model(3, 2, 1, 0)),
		},
		Outside: map[string]string{"follows": "a property, not the machine"},
		Replace: []mutant.Replacement{
			mutant.Edit("elect asks nobody lower after a recovery", "first = 0", ""),
			mutant.Edit("learn keeps the announcement", "p.epoch, p.announced = e, false", "p.epoch = e"),
			mutant.Edit("lead repeats an epoch", "max(p.epoch.Round, 1) + 1", "max(p.epoch.Round, 1)"),
			mutant.Edit("lead forgets what it learned", "max(p.epoch.Round, 1) + 1", "2"),
			mutant.Edit("a waiting process waits for ever", "out.SetTimer(timer, 2*p.timeout, 0)", "out.StopTimer(timer)"),
			mutant.Edit("onTimeout of a settled process goes on", "case p.settled():\n\t\tp.rest(out)", "case p.settled():\n\t\tp.wait(p.trusted, out)"),
			mutant.Edit("restore keeps the suspicion", "p.suspected.Remove(j)", ""),
			mutant.Edit("rest leaves the timer", "out.StopTimer(timer)", ""),
		},
	})
}

// A run in which the leader crashes and comes back, event by event.
func TestGolden(t *testing.T) {
	algotest.Golden(t, Algorithm, "run", sim.Config{
		Config: protocol.Config{N: 4},
		Faults: []scenario.Step{
			{At: 3 * time.Millisecond, Verb: scenario.Crash, Procs: []protocol.ID{3}},
			{At: 900 * time.Millisecond, Verb: scenario.Recover, Procs: []protocol.ID{3}},
		},
	})
}
