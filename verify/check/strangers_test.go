package check_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// strangers are a random algorithm whose members are users, and do not know
// their ids. The registers of one are its section, its mode, a set of members that it noted, and what
// it may still send, above which stands what its user wants.
type strangers struct {
	rows           map[oddity]gesture
	grouped, looks bool
	wrong          uint64 // the mode that the invariant excludes, where nothing is left to send
}

// An oddity is an event, as far as what happens depends on it.
type oddity struct {
	kind  protocol.Kind
	what  uint64 // the message, or the argument of news
	mode  uint64
	noted int // members, at most two count
	wants uint64
}

// A gesture says what happens.
type gesture struct {
	mode          uint64
	note, forget  bool  // who the event is about
	send          uint8 // 0: nothing
	back          bool  // to who the event is about, not to all
	enter         bool
	pick          int
	eject, revoke bool
}

const (
	strangerModes = 3
	strangerKinds = 3
	wanting       = 16 // what may still be sent is below it
)

// newStrangers draws an algorithm.
func newStrangers(r *rand.Rand, grouped bool) *strangers {
	odds := func(percent int) bool { return r.IntN(100) < percent }
	m := &strangers{rows: map[oddity]gesture{}, grouped: grouped, looks: odds(70), wrong: uint64(r.IntN(strangerModes))}
	enter := 5 + r.IntN(60)
	for mode := range uint64(strangerModes) {
		for noted := range 3 {
			for wants := range uint64(len(agentSets) + 1) {
				for _, kind := range []protocol.Kind{
					protocol.Start, protocol.Try, protocol.Exit, protocol.Cancel, protocol.Receive, protocol.Suspect, protocol.Restore,
				} {
					for what := range uint64(strangerKinds + 1) {
						g := gesture{mode: mode, note: odds(40), forget: odds(20), enter: odds(enter), pick: r.IntN(2), eject: odds(30), revoke: odds(5)}
						if odds(50) {
							g.mode = uint64(r.IntN(strangerModes))
						}
						if odds(40) {
							g.send, g.back = 1+uint8(r.IntN(strangerKinds)), odds(50)
						}
						m.rows[oddity{kind, what, mode, noted, wants}] = g
					}
				}
			}
		}
	}
	return m
}

func (m *strangers) step(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
	about := ev.Kind == protocol.Receive || ev.Kind == protocol.Suspect || ev.Kind == protocol.Restore
	c := oddity{kind: ev.Kind, mode: p.r[1], noted: min(2, ones(p.r[2]))}
	switch ev.Kind {
	case protocol.Start:
		p.r[3] = 1
	case protocol.Try:
		p.r[0] = uint64(protocol.InTry)
		p.r[3] += wanting * uint64(1+slices.Index(agentSets, protocol.Groups(ev.Data)))
	case protocol.Exit, protocol.Cancel:
		p.r[0], p.r[3] = uint64(protocol.InRem), p.r[3]%wanting
		out.Rem()
	case protocol.Receive:
		c.what = uint64(ev.Msg)
	case protocol.Suspect, protocol.Restore:
		c.what = min(ev.Arg, 2)
	}
	if m.looks {
		c.wants = p.r[3] / wanting
	}
	g := m.rows[c]
	if p.r[1] = g.mode; g.forget {
		p.r[2] = 0
	}
	if about && g.note {
		p.r[2] |= 1 << ev.From
	}
	if g.send > 0 && p.r[3]%wanting > 0 {
		p.r[3]--
		if g.back && about {
			out.Send(ev.From, g.send)
		} else {
			out.Broadcast(g.send)
		}
	}
	if ev.Kind == protocol.Restore && g.revoke {
		out.Revoke(ev.From)
	}
	switch {
	case g.enter && p.r[0] == uint64(protocol.InTry):
		p.r[0] = uint64(protocol.InCrit)
		out.CritIn((&agent{wants: p.r[3] / wanting}).granted(deed{pick: g.pick}), 0)
	case g.eject && ev.Kind == protocol.Suspect && p.r[0] == uint64(protocol.InCrit):
		p.r[0] = uint64(protocol.InLost)
		out.Ejected()
	}
}

func (m *strangers) algorithm(leases bool) protocol.Algorithm[uint8] {
	i := protocol.Info{Cancels: true, Grouped: m.grouped, Several: m.grouped, Tolerates: protocol.Crash}
	if leases {
		i.Detector, i.Tolerates = protocol.LeaseDetector, protocol.Crash|protocol.Recovery
	}
	a := algorithm(i, m.step)
	a.Interchangeable = func(protocol.Config) bool { return true }
	a.Permute = func(p protocol.Process[uint8], f func(protocol.ID) protocol.ID) {
		t, set := p.(*toy), uint64(0)
		for j := range protocol.ID(t.n) {
			set |= t.r[2] >> j & 1 << f(j)
		}
		t.r[2] = set
	}
	a.Invariants = []protocol.Invariant{{Name: "toy/mode", Err: func(v *protocol.View) error {
		for _, p := range protocol.Procs[*toy](v) {
			if p.r[1] == m.wrong && p.r[3]%wanting == 0 {
				return errors.New("a process is in the wrong mode")
			}
		}
		return nil
	}}}
	return a
}

// Random algorithms of interchangeable users, who want different groups or have leases at each
// other, are decided alike with and without the reduction by symmetry.
func TestStrangers(t *testing.T) {
	seeds := lane.Of[uint64](t, "machines", 6, 18, 600)
	reduced, violated, pairs := map[string]int{}, map[string]int{}, 0
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 17))
		grouped, leases := seed%3 > 0, seed%3 != 1
		m, c := newStrangers(r, grouped), config(3)
		c.MaxMemory, c.Workers, c.FIFO = 4<<20, 1, r.IntN(2) == 0
		c.Entries = []int{1, 1, r.IntN(2)}
		switch c.Cancel = max(0, r.IntN(4)-2); {
		case leases && r.IntN(2) == 0:
			c.Crash, c.Recover = 1, r.IntN(2)
		case leases:
			c.Suspect = 1
		}
		kind := ""
		if grouped {
			c.Wants, kind = agentWants(r, 3), "groups"
			if c.Cancel = 0; leases {
				c.Entries = []int{1, 1, 0}
			}
			if r.IntN(4) > 0 {
				c.Wants[r.IntN(2)] = c.Wants[2]
				pairs++
			}
		}
		if leases {
			kind += " leases"
		}
		a := m.algorithm(leases)
		for _, property := range []string{check.Exclusion, check.WellFormed, check.Deadlock, check.Model, "toy/mode"} {
			c.Properties, c.Reduce = []string{property}, nil
			full := run(t, a, c)
			c.Reduce = []string{check.ReduceSymmetry}
			v := run(t, a, c)
			if full.Verdict == check.Undecided || v.Verdict == check.Undecided {
				continue
			}
			if v.Verdict != full.Verdict {
				t.Fatalf("seed %d, %s: %s is %s with symmetry, %s without: %s", seed, kind, property, v.Verdict, full.Verdict, full.Bounds)
			}
			if v.States < full.States && full.Verdict == check.Holds {
				reduced[kind]++
			}
			if c.Reduce = nil; v.Verdict == check.Violated {
				violated[kind]++
				rewalk(t, a, c, v)
			}
		}
	}
	t.Logf("%d machines: reduced %v, violated %v; %d with two users alike at least", seeds, reduced, violated, pairs)
	for _, kind := range []string{"groups", " leases", "groups leases"} {
		if reduced[kind] < int(seeds)/18 || violated[kind] < int(seeds)/18 {
			t.Errorf("%s: %d searches reduced, %d violations: too few to show anything", kind, reduced[kind], violated[kind])
		}
	}
}

// Users who want different groups are not interchangeable, though what they run is: who wants
// a and who wants b must not be inside together, be it in one place or in the other.
func TestSymmetryOfWants(t *testing.T) {
	a := algorithm(protocol.Info{Grouped: true}, func(_ *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch ev.Kind {
		case protocol.Try:
			out.CritIn(protocol.Group(ev.Data), 0)
		case protocol.Exit:
			out.Rem()
		}
	})
	a.Interchangeable = func(protocol.Config) bool { return true }
	a.Permute = func(protocol.Process[uint8], func(protocol.ID) protocol.ID) {}
	for _, test := range []struct {
		wants   string // of each user
		entries []int
		note    string
		result  check.Result
	}{
		{"a b a", []int{1, 1, 0}, "reduced by symmetry", check.Violated},
		{"b a a", []int{1, 1, 1}, "reduced by symmetry", check.Violated},
		{"b a a", []int{0, 1, 1}, "reduced by symmetry", check.Holds},
		{"b a c", []int{1, 1, 0}, "not reduced by symmetry: 1 members are interchangeable", check.Violated},
		{"a a a", []int{1, 1, 1}, "reduced by symmetry", check.Holds},
		{"a a a", []int{check.Unlimited, 1, 1}, "reduced by symmetry", check.Holds},
	} {
		c := config(3)
		c.Entries, c.Reduce, c.Properties = test.entries, []string{check.ReduceSymmetry}, []string{check.Exclusion}
		for _, set := range strings.Fields(test.wants) {
			c.Wants = append(c.Wants, sets(set))
		}
		if v := run(t, a, c); v.Verdict != test.result || !strings.Contains(v.Bounds, test.note) {
			t.Errorf("%s, entries %v: %s, want %s: %s %q, %s", test.wants, test.entries, v.Verdict, test.result, v.Reason, v.Trace, v.Bounds)
		}
	}
}
