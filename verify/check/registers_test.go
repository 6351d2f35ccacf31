package check_test

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/toys/cells"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// two is a model of two processes that share memory, which try without end.
func two(semantics protocol.Semantics, properties ...string) check.Config {
	c := config(2)
	c.Entries, c.Registers, c.Properties = []int{check.Unlimited}, semantics, properties
	return c
}

// Peterson's algorithm holds, with safe registers too. Without its second write it does not.
func TestPeterson(t *testing.T) {
	for semantics, bounds := range map[protocol.Semantics]string{"": "atomic registers", protocol.Safe: "safe registers"} {
		v := run(t, cells.Peterson, two(semantics, "all"))
		if v.Verdict != check.Holds || !strings.Contains(v.Bounds, bounds) {
			t.Errorf("%q: %s of %s in %s: %s %v", semantics, v.Verdict, v.Property, v.Bounds, v.Reason, v.Trace)
		}
	}
	v := run(t, cells.Impolite, two("", check.Exclusion))
	wants(t, v, check.Violated, check.Exclusion, "try p1", "try p2",
		"write p2 flag[2]", "read p2 flag[1]", "write p1 flag[1]", "read p1 flag[2]", "read p1 turn")
	text := []string{
		"flag[1] 1", "flag[2] 1", "turn 0",
	}
	for i, c := range v.Run.Registers {
		if got := c.Register + " " + string(rune('0'+c.Value)); got != text[i] || c.Writers != 0 {
			t.Errorf("at the end register %d is %+v, want %s", i, c, text[i])
		}
	}
	did := map[int]string{
		1: "p2 is to write 1 to flag[2]", 2: "p2 has written 1 to flag[2]; p2 is to read flag[1]",
		6: "p1 finds 0 in turn; p1 enters",
	}
	for i, want := range did {
		if got := strings.Join(v.Run.Steps[i].Did(), "; "); got != want {
			t.Errorf("step %d: %q, want %q", i+1, got, want)
		}
	}
}

// Two processes that read before they write are both inside, and a reader that trusts what it
// reads during a write is wrong with safe registers only.
func TestRegisterExclusion(t *testing.T) {
	wants(t, run(t, cells.TestAndSet, two("", check.Exclusion)), check.Violated, check.Exclusion, "try p1", "try p2",
		"read p1 lock", "read p2 lock", "write p1 lock", "write p2 lock")
	if v := run(t, cells.Trusting, two("", check.Exclusion)); v.Verdict != check.Holds {
		t.Errorf("with atomic registers: %s: %v", v.Reason, v.Trace)
	}
	wants(t, run(t, cells.Trusting, two(protocol.Safe, check.Exclusion)), check.Violated, check.Exclusion,
		"try p1", "try p2", "begin p1 flag[1]", "begin p2 flag[2]", "write p2 flag[2]", "read p2 flag[1] 1",
		"write p1 flag[1]", "read p1 flag[2]")
}

// Who awaits what never comes is stuck; who looks for it again and again is busy for ever.
func TestWaitingAndPolling(t *testing.T) {
	both := []string{"try p1", "try p2", "write p1 flag[1]", "write p2 flag[2]"}
	for _, property := range []string{check.Deadlock, check.MakesProgress, check.Starvation} {
		wants(t, run(t, cells.Courteous, two("", property)), check.Violated, property, both...)
	}
	polling := cells.Of("polling", func(p *cells.Process, ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
		if ev.Kind == protocol.Try || ev.Kind == protocol.Value && ev.Arg == 0 {
			out.Read(0)
		}
	}, protocol.Register{Name: "never", Owner: 0, Most: 1})
	if v := run(t, polling, two("", check.Deadlock)); v.Verdict != check.Holds {
		t.Errorf("who polls is no deadlock: %s %v", v.Reason, v.Trace)
	}
	for _, property := range []string{check.MakesProgress, check.Starvation} {
		v := run(t, polling, two("", property))
		wants(t, v, check.Violated, property, "try p1", "read p1 never")
		if v.Loop != 1 {
			t.Errorf("%s: the loop begins behind step %d, want 1: it is the read", property, v.Loop)
		}
	}
}
