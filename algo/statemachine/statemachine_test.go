package statemachine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

var forms = []protocol.Algorithm[Message]{Algorithm, Announced}

func options(models ...check.Config) algotest.Options {
	return algotest.Options{
		Allocations: 1, // commands are copied into lists that grow
		Skip: map[string]string{
			"State": "the log grows with the run, and to encode it at each step takes minutes; TestStorm reloads states",
		},
		Exhaustive: models,
	}
}

var (
	both   = check.Config{Config: protocol.Config{N: 2}, Properties: []string{"all"}}
	wrong  = check.Config{Config: protocol.Config{N: 2}, Entries: []int{0, 1}, Suspect: 1, Properties: []string{"all"}}
	threes = check.Config{Config: protocol.Config{N: 3}, Entries: []int{0, 0, 1}, Properties: []string{"all"}}
)

func TestConformance(t *testing.T)          { algotest.Run(t, Algorithm, options(both, wrong)) }
func TestConformanceAnnounced(t *testing.T) { algotest.Run(t, Announced, options(both, wrong, threes)) }
func FuzzRead(f *testing.F)                 { algotest.FuzzRead(f, Algorithm) }
func FuzzLoadState(f *testing.F)            { algotest.FuzzLoadState(f, Algorithm) }

// sent is how many messages of each kind a part of a story sends.
func sent(s *algotest.System[Message], part func()) []int {
	before := slices.Clone(s.Kinds)
	part()
	s.Settle()
	for k := range before {
		before[k] = s.Kinds[k] - before[k]
	}
	return before
}

// Enter, operation and exit are one command each, and cost the same. That of the coordinator needs no request.
func TestCosts(t *testing.T) {
	for _, a := range forms {
		for n := 2; n <= 9; n++ {
			s := algotest.NewSystem(a, protocol.Config{N: n}, 0)
			for id, requests := range []int{0, n - 1} {
				user := protocol.ID(id)
				want := make([]int, len(messages))
				want[Request], want[Propose], want[Accepted], want[Decided] = requests, n-1, n-1, n-1
				if a.Variant == "" {
					want[Accepted], want[Decided] = n*(n-1), 0
				}
				for _, part := range []func(){
					func() { s.Try(user) }, func() { s.Issue(user, fmt.Sprint("op", id)) }, func() { s.Exit(user) },
				} {
					if got := sent(s, part); !slices.Equal(got, want) {
						t.Errorf("%q, N=%d, process %d: %v, want %v", a.Variant, n, id, got, want)
					}
				}
			}
			if got := s.Copies; !slices.Equal(got[0], []string{"op0", "op1"}) || !slices.Equal(got[n-1], got[0]) {
				t.Errorf("%q, N=%d: copies %q", a.Variant, n, got)
			}
		}
	}
}

// A user that is falsely suspected is ejected by a command, and hears the truth about the operation that it has
// open: it is executed if it was decided before that command, else never.
func TestEjected(t *testing.T) {
	for _, a := range forms {
		for _, first := range []bool{true, false} {
			s := algotest.NewSystem(a, protocol.Config{N: 3}, 0)
			s.Try(1)
			s.Settle()
			s.Try(2)
			s.Settle()
			s.Issue(1, "a")
			if first {
				s.Deliver(1, 0, 0)
			}
			s.Step(0, protocol.Input{Kind: protocol.Suspect, From: 1})
			s.Settle()
			want := []string(nil)
			if first {
				want = []string{"a"}
			}
			for id, copied := range s.Copies {
				if !slices.Equal(copied, want) {
					t.Errorf("%q, proposed %v: process %d has executed %q, want %q", a.Variant, first, id, copied, want)
				}
			}
			if s.Users[1] != protocol.InLost || s.Users[2] != protocol.InCrit {
				t.Errorf("%q, proposed %v: users are in sections %v", a.Variant, first, s.Users)
			}
		}
	}
}

// takeover is a story of three coordinators, and returns what is wrong at its end. The first one gives place 1 to the
// command of process 2, and place 2 to that of process 1, which nobody else hears of. The second one does not know of
// this, and has its own command, to enter, decided for place 1. The third one hears of both from the first: place 1 is
// that of the later ballot, and the same command in place 2 does nothing.
func takeover(a protocol.Algorithm[Message]) (fault string) {
	defer func() {
		if v := recover(); v != nil {
			fault = fmt.Sprint(v)
		}
	}()
	s := algotest.NewSystem(a, protocol.Config{N: 3}, 0)
	newest := func(from, to protocol.ID) { s.Deliver(from, to, len(s.InFlight(from, to))-1) }
	s.Try(1)
	s.Try(2)
	s.Deliver(2, 0, 0)
	s.Deliver(1, 0, 0)
	s.Step(1, protocol.Input{Kind: protocol.Suspect, From: 0})
	newest(1, 2) // PREPARE
	newest(2, 1) // PROMISE
	s.Deliver(1, 2, 1)
	newest(2, 1) // ACCEPTED
	if got := s.Inside(); !slices.Equal(got, []protocol.ID{1}) {
		return fmt.Sprintf("%v are inside, want 1", got)
	}
	s.Step(2, protocol.Input{Kind: protocol.Suspect, From: 0})
	s.Step(2, protocol.Input{Kind: protocol.Suspect, From: 1})
	newest(2, 0)
	newest(0, 2)
	s.Settle()
	if s.Users[1] != protocol.InLost || s.Users[2] != protocol.InCrit { // the third one has suspected who was inside
		return fmt.Sprintf("users are in sections %v", s.Users)
	}
	s.Exit(1)
	s.Issue(2, "a")
	s.Settle()
	s.Exit(2)
	s.Settle()
	if got := s.Inside(); got != nil {
		return fmt.Sprintf("%v are inside at the end", got)
	}
	return s.Object.Unfinished().Text
}

func TestTakeover(t *testing.T) {
	for _, a := range forms {
		if fault := takeover(a); fault != "" {
			t.Errorf("%q: %s", a.Variant, fault)
		}
		for name, b := range map[string]broken{
			"what a promise has goes before what later ballots have": {before: func(p *Process, ev *protocol.Event[Message]) {
				for i := range ev.Msg.Log {
					ev.Msg.Log[i].Ballot = p.ballot
				}
			}},
			"a command is executed in each of its places": {before: func(p *Process, _ *protocol.Event[Message]) {
				clear(p.last)
			}},
		} {
			if takeover(b.of(a)) == "" {
				t.Errorf("%q, %s: that is not noticed", a.Variant, name)
			}
		}
	}
}

// In simulated time, too: through crashes, pauses and partitions, which are suspected by mistake, no property
// falls, and everybody who lives is done at the end.
func TestSimulated(t *testing.T) {
	for _, a := range forms {
		var ejected uint64
		crashed := 0
		for seed := range uint64(20) {
			r, err := sim.Run(a, sim.Config{
				Config: protocol.Config{N: 5}, Entries: []int{20}, Operations: []int{2}, Seed: seed,
				Delay: sim.Exponential(time.Millisecond), Think: sim.Exponential(20 * time.Millisecond),
				Faults: []scenario.Step{
					{At: 50 * time.Millisecond, Verb: scenario.Crash, Procs: []protocol.ID{0}},
					{At: 150 * time.Millisecond, Verb: scenario.Crash, Procs: []protocol.ID{1}},
				},
				PauseEvery: 50 * time.Millisecond, PartitionEvery: 70 * time.Millisecond, FaultsUntil: time.Second,
				Detect: 4 * time.Millisecond,
			})
			if err != nil {
				t.Fatal(err)
			}
			if r.ViolationCount > 0 {
				t.Errorf("%q, seed %d: %q", a.Variant, seed, r.Violations)
			}
			ejected += r.Ejected
			crashed += r.Crashes
		}
		if ejected == 0 || crashed != 40 {
			t.Errorf("%q: %d users were ejected, %d processes crashed: these runs show nothing", a.Variant, ejected, crashed)
		}
	}
}
