package centralised

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/algo/bully"
	"github.com/poundlock/poundlock/algo/ringelection"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/withleader"
)

var successor = withleader.With(Successor, bully.Algorithm)

func crashing(n, crashes int, entries ...int) check.Config {
	return check.Config{
		Config: protocol.Config{N: n}, Crash: crashes, Entries: entries, MaxMemory: 512 << 20, Properties: []string{"all"},
	}
}

// Exclusion, progress and starvation freedom hold, whoever crashes and whoever of the two
// elections names the next coordinator; with time-outs that are too short nobody is inside
// beside another one, either.
func TestSuccessor(t *testing.T) {
	early := crashing(3, 1)
	early.Timers, early.Properties = check.AnyMoment, nil
	algotest.Holds(t, successor, []check.Config{crashing(3, 1), crashing(3, 2), early},
		[]check.Config{crashing(3, 2, 2), crashing(4, 1)})
	algotest.Holds(t, withleader.With(Successor, ringelection.Algorithm), []check.Config{crashing(3, 2)}, nil)
}

// heirs are processes to whom a story says who leads.
func heirs(n int) *algotest.System[Told] {
	s := algotest.NewSystem(Successor, protocol.Config{N: n}, 0)
	lead(s, protocol.ID(n-1), 1)
	return s
}

func lead(s *algotest.System[Told], leader protocol.ID, epoch uint64) {
	for id, p := range s.Procs {
		if p != nil {
			s.Step(protocol.ID(id), protocol.NewLead(leader, epoch))
		}
	}
}

func TestStories(t *testing.T) {
	for name, story := range map[string]func() string{
		"holder": holderTells, "old grant": oldGrant, "mourned": mourned, "again": again,
	} {
		if fault := story(); fault != "" {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

func inside(s *algotest.System[Told], want ...protocol.ID) string {
	if got := s.Inside(); !slices.Equal(got, want) {
		return fmt.Sprintf("exclusion by story, inside are %v, want %v", got, want)
	}
	return ""
}

func bury(s *algotest.System[Told], j protocol.ID) {
	s.Crash(j)
	for id, p := range s.Procs {
		if p != nil {
			s.Step(protocol.ID(id), protocol.Input{Kind: protocol.Suspect, From: j})
		}
	}
}

// holderTells: the successor lets nobody in before the holder has told that it is inside, and
// has left; and then those who wait, without another ENTER of theirs.
func holderTells() string {
	s := heirs(4)
	for _, id := range []protocol.ID{0, 1} {
		s.Try(id)
		s.Settle()
	}
	bury(s, 3)
	s.Try(2)
	entered := s.Kinds[Enter]
	lead(s, 2, 2)
	s.Settle()
	if fault := inside(s, 0); fault != "" {
		return fault
	}
	for range 2 {
		s.Exit(s.Inside()[0])
		s.Settle()
		if len(s.Inside()) != 1 {
			return "progress by story, who waited is not let in"
		}
	}
	if s.Kinds[Enter] != entered {
		return "messages by story, somebody had to ask twice"
	}
	return ""
}

// oldGrant is void: its receiver has told the new coordinator that it waits.
func oldGrant() string {
	s := heirs(3)
	s.Try(0)
	s.Deliver(0, 2, 0) // GRANTED of epoch 1 is on its way to 0
	s.Try(1)
	lead(s, 1, 2)
	s.Deliver(2, 1, 0)
	s.Deliver(2, 0, 0) // GRANTED
	if fault := inside(s); fault != "" {
		return fault
	}
	s.Deliver(0, 1, 0)
	s.Settle()
	return inside(s, 1)
}

// mourned: a process that has crashed is not waited for, whether it was inside or waited itself.
func mourned() string {
	s := heirs(4)
	for _, id := range []protocol.ID{0, 1, 2} {
		s.Try(id)
		s.Settle()
	}
	bury(s, 1)
	s.Exit(0)
	s.Settle()
	return inside(s, 2)
}

// again: a coordinator that is elected again begins anew, for its own GRANTED is old too.
func again() string {
	s := heirs(3)
	s.Try(0)
	s.Deliver(0, 2, 0)
	lead(s, 2, 2)
	s.Settle()
	return inside(s, 0)
}

// The catalogue of texts, so that traces can be read.
func TestToldText(t *testing.T) {
	for want, m := range map[string]Told{
		"ENTER(5)": {Enter, 5}, "GRANTED(5)": {Granted, 5}, "RELEASED(5)": {Released, 5}, "IDLE(5)": {Idle, 5},
		"WAITING(5)": {Waiting, 5}, "INSIDE(5)": {Inside, 5},
	} {
		if got := Successor.Text(m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSuccessorMutants(t *testing.T) {
	small := func(c check.Config) check.Config {
		c.MaxMemory = 16 << 20
		return c
	}
	model := func(c check.Config) mutant.Check { return mutant.Decided(successor, small(c)) }
	story := func(f func() string) mutant.Check {
		return func() (string, error) { return f(), nil }
	}
	released := func(taken bool) mutant.Check {
		return mutant.Panics("centralised: ", func() {
			s := heirs(3)
			if taken {
				s.Try(2)
			}
			s.Procs[2].Step(protocol.Event[Told]{
				Input: protocol.Input{Kind: protocol.Receive}, Msg: Told{Released, 1},
			}, &protocol.Out[Told]{})
		})
	}
	refuses := func(in protocol.Input, m Told) mutant.Check {
		return mutant.Panics("centralised: ", func() {
			s := heirs(3)
			s.Try(1)
			var out protocol.Out[Told]
			s.Procs[1].Step(protocol.Event[Told]{Input: in, Msg: m}, &out)
		})
	}
	from := func(j protocol.ID) protocol.Input { return protocol.Input{Kind: protocol.Receive, From: j} }
	early := crashing(3, 1)
	early.Timers, early.Properties = check.AnyMoment, nil
	mutant.Test(t, mutant.Config{
		Inside: []string{"Heir"},
		Checks: []mutant.Check{
			model(crashing(2, 1)),
			model(crashing(3, 1)),
			mutant.Panics("centralised: ", func() { heirs(3).Procs[1].(*Heir).enter(&protocol.Out[Told]{}) }),
			refuses(from(2), Told{Enter, 1}),
			refuses(from(0), Told{Granted, 1}),
			refuses(from(2), Told{Granted, 2}),
			refuses(from(0), Told{Enter, 1}),
			released(false), released(true),
			story(holderTells), story(oldGrant), story(mourned), story(again),
			mutant.Decided(withleader.With(Successor, ringelection.Algorithm), small(crashing(3, 1))),
			model(crashing(3, 1, 2)),
			model(crashing(3, 2)),
			model(early),
		},
		Replace: []mutant.Replacement{
			mutant.Edit("lead keeps what was heard", "p.heard.Clear()\n\tif !first", "if !first"),
			mutant.Edit("lead keeps the queue", "p.taken, p.holder, p.waits = false, 0, p.waits[:0]\n\tp.heard.Clear", "p.taken, p.holder = false, 0\n\tp.heard.Clear"),
			mutant.Edit("lead keeps the holder", "p.taken, p.holder, p.waits = false, 0, p.waits[:0]\n\tp.heard.Clear", "p.waits = p.waits[:0]\n\tp.heard.Clear"),
			mutant.Edit("grant forgets who is inside", "p.taken, p.holder = true, to", ""),
			mutant.Edit("grant keeps the head of the queue", "p.waits = append(p.waits[:0], p.waits[1:]...)", ""),
		},
	})
}

var successorOptions = algotest.Options{
	Exhaustive: []check.Config{crashing(2, 1), crashing(3, 1)}, Allocations: 0.01,
}

func TestSuccessorConformance(t *testing.T) { algotest.Run(t, successor, successorOptions) }
func FuzzReadTold(f *testing.F)             { algotest.FuzzRead(f, successor, successorOptions) }
func FuzzLoadHeir(f *testing.F)             { algotest.FuzzLoadState(f, successor, successorOptions) }

// A run with contention whose coordinator crashes, event by event.
func TestSuccessorGolden(t *testing.T) {
	algotest.Golden(t, successor, "successor", sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond),
		Faults: []scenario.Step{{At: 3 * time.Millisecond, Verb: scenario.Crash, Procs: []protocol.ID{2}}},
	})
}
