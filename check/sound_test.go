package check_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/scenario"
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
	a.Invariants = []protocol.Invariant[uint8]{{Name: "toy/answers", Err: func(v *protocol.View[uint8]) error {
		answers, asked := 0, 0
		for _, m := range v.InFlight {
			if m == 2 {
				answers++
			}
		}
		for j := range 3 {
			asked += int(v.Procs[j].(*toy).r[0])
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
