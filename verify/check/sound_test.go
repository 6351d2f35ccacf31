package check_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// p2 enters twice at once, which is not well-formed; p3 enters behind it. Who asks for
// exclusion only gets the run to that, be it searched or walked.
func TestBehindIllFormed(t *testing.T) {
	a := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try && p.id == 1:
			out.Crit(0)
			out.Crit(0)
			out.Send(2, 1)
		case ev.Kind == protocol.Receive:
			p.r[0] = 1
		case ev.Kind == protocol.Try && p.r[0] == 1:
			out.Crit(0)
		}
	})
	c := config(3)
	c.Properties = []string{check.Exclusion}
	v := run(t, a, c)
	steps := []string{"try p2", "deliver p2 p3 M(1)", "try p3"}
	wants(t, v, check.Violated, check.Exclusion, steps...)
	c.Swarm = &check.Swarm{Searches: 1, Bits: 16}
	if v := run(t, a, c); v.Verdict != check.Violated || v.Property != check.Exclusion {
		t.Errorf("a swarm: %s of %s (%s)", v.Verdict, v.Property, v.Reason)
	}
	if e := v.Run.Steps[0]; !slices.ContainsFunc(e.Effects, func(f scenario.Effect) bool { return f.Do == scenario.Sends }) {
		t.Errorf("the first step: %+v, want what it sends too", e.Effects)
	}
	c.Swarm, c.Properties = nil, nil
	wants(t, run(t, a, c), check.Violated, check.WellFormed, "try p2")
}

// A prefix that delivers messages which may arrive again leads to several states, of which
// two differ in the names of servers only: one of them stands for both.
func TestEqualRoots(t *testing.T) {
	a := algorithm(clients, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch {
		case ev.Kind == protocol.Try:
			out.Broadcast(1)
		case ev.Kind == protocol.Receive && p.id < 3:
			p.r[0] = 1
			out.Send(ev.From, 2)
		}
	})
	a.Idempotent = func(m uint8) bool { return m == 2 }
	a.Interchangeable = func(protocol.Config) bool { return true }
	a.Permute = func(protocol.Process[uint8], func(protocol.ID) protocol.ID) {}
	a.Invariants = []protocol.Invariant{{Name: "toy/answers", Err: func(v *protocol.View) error {
		answers, asked := 0, 0
		for _, m := range protocol.InFlight[uint8](v) {
			if m == 2 {
				answers++
			}
		}
		for j := range 3 {
			asked += int(toyIn(v.Procs[j]).r[0])
		}
		if asked == 3 && answers == 3 {
			return errors.New("all have answered, and all answers are on their way")
		}
		return nil
	}}}
	c := config(3)
	c.Clients, c.Properties, c.Reduce = 1, []string{"toy/answers"}, []string{check.ReduceSymmetry}
	steps := []string{"try c1", "deliver c1 s1 M(1)", "deliver c1 s2 M(1)", "deliver s1 c1 M(2)", "deliver s2 c1 M(2)"}
	prefix, err := scenario.Names{Members: 3, Clients: true}.Parse(strings.NewReader(strings.Join(steps, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	c.Prefix = prefix
	wants(t, run(t, a, c), check.Violated, "toy/answers", append(steps, "deliver c1 s3 M(1)")...)
}

// counting is three users with a clock each, which goes on for ever, and another counter
// that comes round.
func counting(err func(v *protocol.View) error) (protocol.Algorithm[uint8], check.Config) {
	a := algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		switch ev.Kind {
		case protocol.Start:
			p.r[0] = 1
		case protocol.Try:
			p.r[0], p.r[1] = p.r[0]+1, (p.r[1]+1)%4
			out.Crit(0)
		case protocol.Exit:
			out.Rem()
		}
	})
	a.MapState = func(p protocol.Process[uint8], f func(protocol.Counter, uint64) uint64) {
		t := p.(*toy)
		t.r[0] = f(protocol.Counter{Member: t.id, Least: 1}, t.r[0])
	}
	a.MapMsg = func(protocol.Channel, *uint8, func(protocol.Counter, uint64) uint64) {}
	a.Invariants = []protocol.Invariant{{Name: "toy/clock", Err: err}}
	a.Unsettled = func([]protocol.Stateful) int { return 0 }
	c := config(3)
	c.Entries, c.Properties = []int{check.Unlimited}, []string{"toy/clock"}
	return a, c
}

// What judges states must not see more of counters than distances: the checker moves them,
// and would never show it a large one.
func TestUnsteady(t *testing.T) {
	early := func(v *protocol.View) error {
		for _, p := range protocol.Procs[*toy](v) {
			if p.r[0] > 5 {
				return errors.New("a clock is above 5")
			}
		}
		return nil
	}
	begun := func(v *protocol.View) error {
		for _, p := range protocol.Procs[*toy](v) {
			if p.r[0] < 1 {
				return errors.New("a clock has not begun")
			}
		}
		return nil
	}
	young := func(v *protocol.View) error {
		if p := toyIn(v.Procs[0]); p.r[1] == 3 && p.r[0] < 2 {
			return errors.New("a clock is young")
		}
		return nil
	}
	a, c := counting(begun)
	if v := run(t, a, c); v.Verdict != check.Holds {
		t.Errorf("%s: %s", v.Verdict, v.Reason)
	}
	unsettled := a
	unsettled.Unsettled = func(procs []protocol.Stateful) int { return int(toyIn(procs[0]).r[0] - 1) }
	c.Properties = []string{check.Kept}
	for name, test := range map[string]protocol.Algorithm[uint8]{
		"toy/clock is violated: a clock is above 5": first(counting(early)),
		"toy/clock is violated: a clock is young":   first(counting(young)),
		"other losses are unsettled":                unsettled,
	} {
		k := c
		if name != "other losses are unsettled" {
			k.Properties = []string{"toy/clock"}
		}
		_, err := check.Run(test, k)
		if !errors.Is(err, check.ErrClaim) || !strings.Contains(err.Error(), "with counters moved only, "+name) {
			t.Errorf("%v, want a false claim: %s", err, name)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }
