package ringelection

import (
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

// All live processes agree in the end on the highest of them, and each election ends, with no
// bound on any delay.
func TestHolds(t *testing.T) {
	algotest.Holds(t, Algorithm, []check.Config{
		model(3, 1, 0, 0), model(3, 1, 1, 0), model(3, 1, 0, 1), model(4, 2, 0, 0),
	}, []check.Config{model(3, 0, 0, 2), model(3, 2, 1, 0), model(4, 1, 1, 0)})
}

var options = algotest.Options{Exhaustive: []check.Config{model(2, 1, 1, 0), model(3, 1, 0, 0)}}

func TestConformance(t *testing.T) { algotest.Run(t, Algorithm, options) }
func FuzzRead(f *testing.F)        { algotest.FuzzRead(f, Algorithm, options) }
func FuzzLoadState(f *testing.F)   { algotest.FuzzLoadState(f, Algorithm, options) }

func TestMutants(t *testing.T) {
	small := func(c check.Config) mutant.Check {
		c.MaxMemory = 16 << 20 // a mutant may have rounds without end
		return mutant.Decided(Algorithm, c)
	}
	story := func(f func() string) mutant.Check {
		return func() (string, error) { return f(), nil }
	}
	receive := func(m Message) mutant.Check {
		return mutant.Panics("ringelection: ", func() {
			s := system(3)
			var out protocol.Out[Message]
			s.Procs[0].Step(protocol.Event[Message]{Input: protocol.Input{Kind: protocol.Receive, From: 1}, Msg: m}, &out)
		})
	}
	e := protocol.Epoch{Round: 1, Leader: 2}
	mutant.Test(t, mutant.Config{
		Share: 3,
		Checks: []mutant.Check{
			small(model(3, 1, 0, 0)),
			small(model(2, 1, 1, 0)),
			small(model(3, 1, 0, 1)),
			story(messagesOf), story(initiator), story(holder), story(recovered), story(partition), story(stale),
			story(announcedOnce), story(crossing), story(former), story(quiet),
			receive(Message{Kind: Coordinator, Epoch: protocol.Epoch{Round: 2, Leader: 3}}),
			receive(Message{Kind: Election, Epoch: e, IDs: []uint64{3}}),
			receive(Message{Kind: Election, Epoch: e, IDs: []uint64{1, 2, 1, 2}}),
			small(model(4, 2, 0, 0)),
			small(model(3, 1, 1, 0)),
		},
		Outside: map[string]string{"once": "a property, not the machine"},
		Replace: []mutant.Replacement{
			mutant.Edit("onElection forgets its own id", "p.list = append(append(p.list[:0], m.IDs...), uint64(p.id))", "p.list = append(p.list[:0], m.IDs...)"),
			mutant.Edit("announce the lowest", "protocol.ID(slices.Max(ids))", "protocol.ID(slices.Min(ids))"),
			mutant.Edit("announce repeats an epoch", "max(p.epoch.Round, 1) + 1", "max(p.epoch.Round, 1)"),
			mutant.Edit("tell sends its own memory", "copy(ids, p.list)", "ids = p.list"),
			mutant.Edit("follow stays in the election", "p.epoch, p.list = e, p.list[:0]\n\tout.Leader", "p.epoch = e\n\tout.Leader"),
			mutant.Edit("a former life stays in the election", "p.epoch, p.list = e, p.list[:0]\n\t\treturn", "p.epoch = e\n\t\treturn"),
			mutant.Edit("restore keeps the suspicion", "p.suspected.Remove(j)", ""),
			mutant.Edit("suspect forgets", "p.suspected.Add(j)", ""),
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
