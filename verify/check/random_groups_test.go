package check_test

import (
	"errors"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// without is the search that leaves nothing out: clocks are as they are, and all orders taken.
func without(c check.Config) check.Config {
	c.NoShift, c.Reduce = true, nil
	return c
}

// TestRandomGroups compares reduced searches of random machines with groups, some of them with
// clocks, with searches that leave nothing out.
func TestRandomGroups(t *testing.T) {
	lane.CI.Need(t, "two seconds of random machines")
	machines := lane.Of[uint64](t, "machines", 20, 20, 400)
	order := []string{check.ReduceOrder}
	reduced, violated, undecided := map[string]int{}, map[string]int{}, 0
	for seed := range machines {
		m := newGroupMachine(seed)
		c := m.config(seed)
		for _, full := range m.verdicts(t, without(c), nil) {
			if full.Verdict == check.Undecided {
				undecided++
				continue
			}
			for _, kind := range []struct {
				name    string
				reduce  []string
				noShift bool
			}{{"order", order, true}, {"shift", nil, false}, {"both", order, false}} {
				k := c
				k.Properties, k.Reduce, k.NoShift = []string{full.Property}, kind.reduce, kind.noShift
				if !kind.noShift && !m.clocks {
					continue
				}
				v, err := check.Run(m.algorithm(), k)
				if err == nil && v.Verdict == check.Undecided {
					undecided++
					continue
				}
				if err != nil || v.Verdict != full.Verdict {
					t.Fatalf("seed %d: %s is %s with %s (%v), without %s: %s", seed, full.Property, v.Verdict, kind.name, err, full.Verdict, full.Bounds)
				}
				if v.States < full.States && full.Verdict == check.Holds {
					reduced[kind.name]++
				}
				if v.Verdict == check.Violated {
					violated[kind.name]++
					m.replays(t, without(k), v)
				}
			}
		}
	}
	t.Logf("%d machines: reduced %v, violated %v, undecided %d", machines, reduced, violated, undecided)
	for _, kind := range []string{"order", "shift", "both"} {
		if reduced[kind] < int(machines)/4 || violated[kind] < int(machines)/4 {
			t.Errorf("%s: %d searches reduced, %d violations: too few to show anything", kind, reduced[kind], violated[kind])
		}
	}
}

// A machine that makes false claims is refuted, or decided all the same; were its claims
// believed, the comparison would show it.
func TestLyingMachines(t *testing.T) {
	lane.CI.Need(t, "a second of random machines")
	for _, test := range []struct {
		name   string
		lie    lie
		reduce func(c *check.Config)
	}{
		{"all that arrives is confluent", rash, func(c *check.Config) { c.Reduce = []string{check.ReduceOrder} }},
		{"clocks are compared with a constant", rigid, func(c *check.Config) { c.NoShift = false }},
	} {
		wrong, refuted := 0, 0
		for seed := uint64(10); seed < 18; seed++ {
			m := newGroupMachine(seed)
			m.lie = test.lie
			for _, full := range m.verdicts(t, without(m.config(seed)), nil) {
				c := without(m.config(seed))
				c.Properties = []string{full.Property}
				test.reduce(&c)
				differs := func(v check.Verdict) bool {
					return v.Verdict != full.Verdict && v.Verdict != check.Undecided && full.Verdict != check.Undecided
				}
				v, err := check.Run(m.algorithm(), c)
				if errors.Is(err, check.ErrClaim) {
					refuted++
				} else if differs(v) {
					t.Errorf("%s, seed %d: %s is %s, want %s, or a claim refuted", test.name, seed, full.Property, v.Verdict, full.Verdict)
				}
				c.Break(false, true, true)
				if v, err := check.Run(m.algorithm(), c); err == nil && differs(v) {
					wrong++
				}
			}
		}
		t.Logf("%s: %d claims refuted; believed, %d verdicts are wrong", test.name, refuted, wrong)
		if wrong == 0 || refuted == 0 {
			t.Errorf("%s: %d claims refuted, %d verdicts wrong: that shows nothing", test.name, refuted, wrong)
		}
	}
}

// The order of what arrives decides into which group a user is let: that is no confluence,
// though it is let in whatever comes first, and is in the same state behind both.
func TestOrderOfGroups(t *testing.T) {
	a := algorithm(protocol.Info{Grouped: true, Several: true}, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Start && p.id > 0:
			out.Send(0, uint8(p.id))
		case ev.Kind == protocol.Try && p.id == 0:
			p.r[0] = max(p.r[0], 1)
		case ev.Kind == protocol.Receive && p.r[0] == 1:
			p.r[0] = 2
			out.CritIn([]protocol.Group{"a", "b"}[ev.Msg-1], 0)
		case ev.Kind == protocol.Receive && p.r[0] == 0:
			p.r[0] = 3 // too early
		case ev.Kind == protocol.Try:
			out.CritIn("a", 0)
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
	})
	a.Confluent = func(p protocol.Process[uint8], _ protocol.ID, _ uint8, _ bool) bool { return p.(*toy).r[0] > 0 }
	c := config(3)
	c.Wants, c.Properties = [][]protocol.Groups{sets("a,b"), sets("a"), sets("a")}, []string{check.Exclusion}
	wants(t, run(t, a, c), check.Violated, check.Exclusion, "try p1 a,b", "try p2 a", "deliver p3 p1 M(2)")
	c.Reduce = []string{check.ReduceOrder}
	if _, err := check.Run(a, c); !errors.Is(err, check.ErrClaim) {
		t.Errorf("reduced: %v, want a claim refuted", err)
	}
	c.Break(false, false, true)
	if v := run(t, a, c); v.Verdict != check.Holds {
		t.Errorf("believed: %s; a comparison with the full search catches nothing", v.Verdict)
	}
}
