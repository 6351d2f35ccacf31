package peterson

import (
	"runtime"
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
		MaxMemory: 256 << 20,
	}
}

var small = algotest.Options{
	Exhaustive: []check.Config{within(1, protocol.Atomic, "all"), within(2, protocol.Atomic, "all")},
}

func TestConformance(t *testing.T) { algotest.Run(t, Algorithm, small) }
func FuzzLoadState(f *testing.F)   { algotest.FuzzLoadState(f, Algorithm, small) }

// A run with contention, event by event.
func TestGolden(t *testing.T) {
	algotest.Golden(t, Algorithm, "run", sim.Config{
		Config: protocol.Config{N: 2}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond),
	})
}

func decide(t *testing.T, a protocol.Algorithm[struct{}], c check.Config) check.Verdict {
	t.Helper()
	v, err := check.Run(a, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s: %d states, %s", v.Property, v.Verdict, v.States, v.Bounds)
	return v
}

// Exclusion, progress and starvation freedom. Peterson 1981.
func TestHolds(t *testing.T) {
	for n := 1; n <= 2; n++ {
		if v := decide(t, Algorithm, within(n, protocol.Atomic, "all")); v.Verdict != check.Holds {
			t.Errorf("%s is %s:\n%s", v.Property, v.Verdict, strings.Join(v.Trace, "\n"))
		}
	}
}

// The same with safe registers, where of overlapping writes of turn the last one stays.
func TestSafe(t *testing.T) {
	if v := decide(t, Algorithm, within(2, protocol.Safe, "all")); v.Verdict != check.Holds {
		t.Errorf("%s is %s:\n%s", v.Property, v.Verdict, strings.Join(v.Trace, "\n"))
	}
}

// Until who tries has written something, the other one enters as often as it likes.
func TestBypass(t *testing.T) {
	v := decide(t, Algorithm, within(2, protocol.Atomic, check.Bypass))
	if v.Verdict != check.Violated || !strings.Contains(v.Reason, "enters as often as it likes") {
		t.Errorf("%s: %s", v.Verdict, v.Reason)
	}
}

// It is for two.
func TestLargest(t *testing.T) {
	const want = "n=3: it is for 2 members at most"
	if _, err := check.Run(Algorithm, within(3, protocol.Atomic)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("check: %v, want %s", err, want)
	}
	if _, err := sim.Run(Algorithm, sim.Config{Config: protocol.Config{N: 3}}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("sim: %v, want %s", err, want)
	}
}

func TestMutants(t *testing.T) {
	// Every mutant is caught, so that there is no list of survivors.
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			mutant.Model(Algorithm, within(1, protocol.Atomic, "all")),
			mutant.Model(Algorithm, within(2, protocol.Atomic, "all")),
			mutant.Model(Algorithm, within(2, protocol.Safe, "all")),
			mutant.Panics("peterson: ", func() {
				var out protocol.Out[struct{}]
				p := Algorithm.New(0, protocol.Config{N: 2})
				p.Step(protocol.Event[struct{}]{Input: protocol.Input{Kind: protocol.Value}}, &out)
			}),
		},
		Replace: []mutant.Replacement{
			mutant.Edit("try leaves flag[i] false", "out.Write(p.id, yes)", "out.Write(p.id, no)"),
			mutant.Edit("it writes turn in place of flag", "p.at = wants\n\t\tout.Write(p.id, yes)", "p.at = wants\n\t\tout.Write(turn, name(p.id))"),
			mutant.Edit("it takes the turn", "out.Write(turn, name(p.id))", "out.Write(turn, name(p.other()))"),
			mutant.Edit("it leaves turn as it is", "p.at = gives\n\t\tout.Write(turn, name(p.id))", "p.look(out)"),
			mutant.Edit("it looks at flag only", "p.at = looksOn\n\t\tout.Read(turn)", "p.look(out)"),
			mutant.Edit("it looks at its own flag", "p.at = looks\n\tout.Read(p.other())", "p.at = looks\n\tout.Read(p.id)"),
			mutant.Edit("it waits for its own turn", "v == name(p.other())", "v == name(p.id)"),
			mutant.Edit("exit leaves flag[i] true", "out.Write(p.id, no)", "out.Write(p.id, yes)"),
			mutant.Edit("exit leaves flag[i] alone", "p.at = releases\n\t\tout.Write(p.id, no)", "p.at = rest\n\t\tout.Rem()"),
		},
	})
}

// BenchmarkStep measures a step under contention, the simulator included.
func BenchmarkStep(b *testing.B) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := sim.Run(Algorithm, sim.Config{
		Config: protocol.Config{N: 2}, Entries: []int{1 + b.N/10}, Think: sim.Constant(0), Hold: sim.Constant(time.Millisecond),
	})
	if err != nil {
		b.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	allocations := float64(after.Mallocs-before.Mallocs) / float64(r.Events)
	b.ReportMetric(allocations, "allocs/step")
	if r.Events > 100_000 && allocations > 0.01 {
		b.Errorf("%.4f allocations a step, want below 0.01", allocations)
	}
}
