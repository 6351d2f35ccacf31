package dijkstra

import (
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// within is a model of n processes with unlimited entries.
func within(n int, r protocol.Semantics, properties ...string) check.Config {
	return check.Config{
		Config: protocol.Config{N: n}, Registers: r, Entries: []int{check.Unlimited}, Properties: properties,
		MaxMemory: 512 << 20,
	}
}

var small = algotest.Options{
	Exhaustive: []check.Config{within(1, protocol.Atomic), within(2, protocol.Atomic), within(3, protocol.Atomic)},
	Lacking:    []check.Config{within(2, protocol.Atomic)},
}

func TestConformance(t *testing.T) { algotest.Run(t, Algorithm, small) }
func FuzzLoadState(f *testing.F)   { algotest.FuzzLoadState(f, Algorithm, small) }

// A run with contention, event by event.
func TestGolden(t *testing.T) {
	algotest.Golden(t, Algorithm, "run", sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond),
	})
}

func decide(t *testing.T, c check.Config) check.Verdict {
	t.Helper()
	v, err := check.Run(Algorithm, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s: %d states, %s", v.Property, v.Verdict, v.States, v.Bounds)
	return v
}

// Exclusion, and somebody who tries enters in the end. Dijkstra 1965, "The Proof".
func TestHolds(t *testing.T) {
	for n := 1; n <= 3; n++ {
		c := within(n, protocol.Atomic, check.Exclusion, check.WellFormed, check.Deadlock, check.MakesProgress)
		if v := decide(t, c); v.Verdict != check.Holds {
			t.Errorf("%s is %s:\n%s", v.Property, v.Verdict, strings.Join(v.Trace, "\n"))
		}
	}
}

// p1 tries for ever: each time that it reads b[2], p2 has just tried again. Nobody is kept
// from a step for ever, so the run is fair.
func TestStarvation(t *testing.T) {
	v := decide(t, within(2, protocol.Atomic, check.Starvation))
	if v.Verdict != check.Violated || !strings.HasPrefix(v.Reason, "starvation: p1 tries for ever") {
		t.Fatalf("%s: %s", v.Verdict, v.Reason)
	}
	loop := v.Trace[v.Loop:]
	if !strings.Contains(strings.Join(loop, "\n"), "exit p2") {
		t.Errorf("nobody enters in the loop:\n%s", strings.Join(loop, "\n"))
	}
	// With as many entries as one likes, but an end of them, nobody waits for ever.
	c := within(3, protocol.Atomic, check.Starvation)
	c.Entries = []int{2}
	if v := decide(t, c); v.Verdict != check.Holds {
		t.Errorf("with 2 entries each it is %s:\n%s", v.Verdict, strings.Join(v.Trace, "\n"))
	}
}

// While one tries there is no bound on how often another one enters.
func TestBypass(t *testing.T) {
	v := decide(t, within(2, protocol.Atomic, check.Bypass))
	if v.Verdict != check.Violated || !strings.Contains(v.Reason, "enters as often as it likes") {
		t.Errorf("%s: %s", v.Verdict, v.Reason)
	}
}

// Safe registers exclude, and do not let somebody in.
func TestSafe(t *testing.T) {
	for n := 2; n <= 3; n++ {
		if v := decide(t, within(n, protocol.Safe)); v.Verdict != check.Holds {
			t.Errorf("%s is %s:\n%s", v.Property, v.Verdict, strings.Join(v.Trace, "\n"))
		}
	}
	v := decide(t, within(2, protocol.Safe, check.MakesProgress))
	if v.Verdict != check.Violated {
		t.Fatalf("progress is %s", v.Verdict)
	}
	// In the loop p1 has the turn and reads c[2] while p2 writes what it holds already.
	loop := strings.Join(v.Trace[v.Loop:], "\n")
	if !strings.Contains(loop, "begin p2 c[2]\nread p1 c[2] 0") {
		t.Errorf("the loop is another one:\n%s", loop)
	}
}

func TestMutants(t *testing.T) {
	holds := []string{check.Exclusion, check.WellFormed, check.Deadlock, check.MakesProgress}
	starves := func() (string, error) {
		v, err := check.Run(Algorithm, within(2, protocol.Atomic, check.Starvation))
		if err != nil || v.Verdict == check.Violated {
			return "", err
		}
		return "nobody starves by check", nil
	}
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			mutant.Model(Algorithm, within(1, protocol.Atomic, holds...)),
			mutant.Model(Algorithm, within(2, protocol.Atomic, holds...)),
			mutant.Model(Algorithm, within(3, protocol.Atomic, holds...)),
			starves,
			mutant.Panics("dijkstra: ", func() {
				var out protocol.Out[struct{}]
				p := Algorithm.New(0, protocol.Config{N: 2})
				p.Step(protocol.Event[struct{}]{Input: protocol.Input{Kind: protocol.Value}}, &out)
			}),
		},
		Inside: []string{"Process"},
		Replace: []mutant.Replacement{
			mutant.Edit("try leaves b[i] true", "out.Write(p.b(p.id), no)", "out.Write(p.b(p.id), yes)"),
			mutant.Edit("Li2 leaves c[i] false", "p.at = backs\n\t\tout.Write(p.c(p.id), yes)", "p.at = backs\n\t\tout.Write(p.c(p.id), no)"),
			mutant.Edit("Li2 is left out", "p.at = backs\n\t\tout.Write(p.c(p.id), yes)", "p.at = asks\n\t\tout.Read(p.k())"),
			mutant.Edit("Li3 takes the turn of itself", "uint64(p.id)+1", "uint64(p.n-p.id)"),
			mutant.Edit("Li4 leaves c[i] true", "out.Write(p.c(p.id), no)", "out.Write(p.c(p.id), yes)"),
			mutant.Edit("Li4 is left out", "p.at = claims\n\t\t\tout.Write(p.c(p.id), no)", "p.at = looks\n\t\t\tp.look(0, out)"),
			mutant.Edit("Li4 looks at every second one", "p.look(r-p.n+1, out)", "p.look(r-p.n+2, out)"),
			mutant.Edit("exit leaves c[i] false", "p.at = leaves\n\t\tout.Write(p.c(p.id), yes)", "p.at = leaves\n\t\tout.Write(p.c(p.id), no)"),
			mutant.Edit("exit leaves b[i] false", "out.Write(p.b(p.id), yes)", "out.Write(p.b(p.id), no)"),
		},
	})
}
