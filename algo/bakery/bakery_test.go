package bakery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/algotest/mutant"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// within is a model with so many entries, of all or of each.
func within(n int, r protocol.Semantics, entries ...int) check.Config {
	return check.Config{Config: protocol.Config{N: n}, Registers: r, Entries: entries, MaxMemory: 512 << 20}
}

var small = algotest.Options{Exhaustive: []check.Config{
	within(1, protocol.Atomic, 3),
	within(2, protocol.Atomic, check.Unlimited),
	within(3, protocol.Atomic, 1),
}}

func TestConformance(t *testing.T)         { algotest.Run(t, Algorithm, small) }
func TestConformanceAwaiting(t *testing.T) { algotest.Run(t, Awaiting, awaiting) }
func TestConformanceHistory(t *testing.T)  { algotest.Run(t, FirstCome, history) }
func FuzzLoadState(f *testing.F)           { algotest.FuzzLoadState(f, Algorithm, small) }

var awaiting = algotest.Options{
	Exhaustive: small.Exhaustive,
	Skip:       map[string]string{"Claims": "they are about messages: package registers has them"},
}

var history = algotest.Options{
	Exhaustive: []check.Config{within(2, protocol.Atomic, check.Unlimited)},
	Skip:       map[string]string{"Info": "for the checker only, it makes no claims", "Claims": "it makes none"},
}

// A run with contention, event by event.
func TestGolden(t *testing.T) {
	algotest.Golden(t, Algorithm, "run", sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{2}, Think: sim.Exponential(2 * time.Millisecond),
	})
}

// Exclusion, no deadlock, no livelock and no starvation, with atomic registers and with safe
// ones. Lamport 1974, section "Proof of Correctness".
func TestHolds(t *testing.T) {
	all := func(models ...check.Config) []check.Config {
		for i := range models {
			models[i].Properties = []string{"all"}
		}
		return models
	}
	models := all(within(2, protocol.Atomic, 3), within(2, protocol.Safe, 3), within(3, protocol.Atomic, 2, 1, 1), within(3, protocol.Safe, 1))
	large := all(within(3, protocol.Atomic, 2), within(3, protocol.Safe, 2, 1, 1))
	algotest.Holds(t, Algorithm, models, large)
	algotest.Holds(t, Awaiting, models, large)
}

// First come, first served after the doorway. Lamport 1974, assertion 1.
func TestFirstCome(t *testing.T) {
	three := within(2, protocol.Safe, 3)
	three.Options = map[string]int64{"tries": 3}
	algotest.Holds(t, FirstCome,
		[]check.Config{within(2, protocol.Atomic, 2), within(2, protocol.Safe, 2), within(3, protocol.Atomic, 1)},
		[]check.Config{three, within(3, protocol.Safe, 1), within(3, protocol.Atomic, 2, 1, 1)})
}

// That p_i is in the doorway and p_j in the bakery does not imply that p_j has the smaller
// ticket: p_i has read num_j before p_j took it, and takes the same number.
func TestDoorwayAndBakery(t *testing.T) {
	a := Algorithm
	a.Invariants = []protocol.Invariant{{
		Name: "doorway",
		Err: func(v *protocol.View) error {
			for i, in := range protocol.Procs[*Process](v) {
				for j, at := range protocol.Procs[*Process](v) {
					if in.at == chosen && at.at == waits && before(in, at) {
						return fmt.Errorf("#%d is in the doorway with %d, #%d in the bakery with %d", i, in.num, j, at.num)
					}
				}
			}
			return nil
		},
	}}
	c := within(2, protocol.Atomic, 1)
	c.Properties = []string{"doorway"}
	v, err := check.Run(a, c)
	if err != nil {
		t.Fatal(err)
	}
	const want = `try p1
try p2
write p1 choosing[1]
read p1 num[2]
write p1 num[1]
write p2 choosing[2]
read p2 num[1]
write p2 num[2]
write p2 choosing[2]`
	if got := strings.Join(v.Trace, "\n"); v.Verdict != check.Violated || got != want {
		t.Errorf("%s: %s\n%s", v.Verdict, v.Reason, got)
	}
}

// The accesses of one entry in each form, a step a line. Lamport 1974, the program of section
// "The Algorithm".
func TestAccesses(t *testing.T) {
	if wrong := accesses(); wrong != "" {
		t.Error(wrong)
	}
}

// accesses compares what process 2 of 3 asks for while process 3 has ticket 4 and gives it
// back when process 2 has looked at it for the second time.
func accesses() string {
	for _, form := range []struct {
		a        protocol.Algorithm[struct{}]
		parallel int64
		want     string
	}{
		{Algorithm, 0, "choosing[2] = 1; num[1]; num[3]; num[2] = 5; choosing[2] = 0; " +
			"choosing[1]; num[1]; choosing[3]; num[3]; num[3]; crit; num[2] = 0; rem; at rest"},
		{Awaiting, 0, "choosing[2] = 1; num[1] num[3]; ; num[2] = 5; choosing[2] = 0; " +
			"choosing[1]>=2; num[1]>=6; choosing[3]>=2; num[3]>=5; crit; num[2] = 0; rem; at rest"},
		{Awaiting, 1, "choosing[2] = 1; num[1] num[3]; ; num[2] = 5; choosing[2] = 0; " +
			"choosing[1]>=2 choosing[3]>=2; num[1]>=6; num[3]>=5; ; crit; num[2] = 0; rem; at rest"},
	} {
		c := protocol.Config{N: 3}
		if form.a.Options != nil {
			c.Options = map[string]int64{"parallel": form.parallel}
		}
		if got := alone(form.a, c, 1); got != form.want {
			return fmt.Sprintf("accesses by story, %s, parallel=%d: %s", form.a.Name, form.parallel, got)
		}
	}
	return ""
}

// alone tells what process id asks for in one entry, and how it stands afterwards. Each
// access is done before a later one; the reads of the last register find 4, 4 and then 0,
// all others 0.
func alone(a protocol.Algorithm[struct{}], c protocol.Config, id protocol.ID) string {
	p, list := a.New(id, c), a.Registers(c)
	last := []uint64{4, 4, 0}
	find := func(r int) (v uint64) {
		if r == len(list)-1 && len(last) > 0 {
			v, last = last[0], last[1:]
		}
		return v
	}
	var told []string
	for todo := []protocol.Input{{Kind: protocol.Try}}; len(todo) > 0 && len(told) < 30; todo = todo[1:] {
		var out protocol.Out[struct{}]
		p.Step(protocol.Event[struct{}]{Input: todo[0]}, &out)
		var line []string
		for _, e := range out.Effects {
			name := list[e.To].Name
			next := protocol.Input{Kind: protocol.Value, From: e.To}
			switch e.Do {
			case protocol.Write:
				name += fmt.Sprintf(" = %d", e.Arg)
			case protocol.Read:
				next.Arg = find(int(e.To))
			case protocol.Await:
				name += fmt.Sprintf(">=%d", e.Arg)
				for next.Arg = find(int(e.To)); next.Arg != 0 && next.Arg < e.Arg; next.Arg = find(int(e.To)) {
					continue
				}
			case protocol.Crit:
				name, next = "crit", protocol.Input{Kind: protocol.Exit}
			case protocol.Rem:
				line = append(line, "rem")
				continue
			}
			line, todo = append(line, name), append(todo, next)
		}
		told = append(told, strings.Join(line, " "))
	}
	return strings.Join(append(told, protocol.Show(p)), "; ")
}

func TestMutants(t *testing.T) {
	all := func(a protocol.Algorithm[struct{}], c check.Config) mutant.Check {
		c.Properties = []string{"all"}
		return mutant.Model(a, c)
	}
	mutant.Test(t, mutant.Config{
		Checks: []mutant.Check{
			all(Algorithm, within(1, protocol.Atomic, 1)),
			all(Algorithm, within(2, protocol.Atomic, 2)),
			all(FirstCome, within(2, protocol.Atomic, 2)),
			all(Algorithm, within(3, protocol.Atomic, 1)),
			all(Awaiting, within(2, protocol.Atomic, 2)),
			func() (string, error) { return accesses(), nil },
			mutant.Panics("bakery: ", func() {
				var out protocol.Out[struct{}]
				p := Algorithm.New(0, protocol.Config{N: 2})
				p.Step(protocol.Event[struct{}]{Input: protocol.Input{Kind: protocol.Value}}, &out)
			}),
		},
		Inside: []string{"Process"},
		Replace: []mutant.Replacement{
			mutant.Edit("try does not say that it chooses", "out.Write(p.choosing(p.id), 1)", "out.Write(p.choosing(p.id), 0)"),
			mutant.Edit("exit keeps the ticket", "out.Write(p.ticket(p.id), 0)", "out.Read(p.ticket(1 - p.id))"),
			mutant.Edit("the doorway sees only the last number", "p.max = max(p.max, v)", "p.max = v"),
			mutant.Edit("the ticket is not larger", "takes, p.max+1, 0", "takes, max(1, p.max), 0"),
			mutant.Edit("the doorway is remembered", "takes, p.max+1, 0", "takes, p.max+1, p.max"),
			mutant.Edit("the doorway ends before the ticket is written", "p.at, p.num, p.max = takes,", "p.at, p.num, p.max = chosen,"),
			mutant.Edit("who waits takes another ticket", "p.wait(r, out)", "p.at, p.num = starts, 0\n\t\tout.Write(p.choosing(p.id), 1)"),
			mutant.Edit("equal tickets: the larger id is first", "case j < p.id:", "case j > p.id:"),
			mutant.Edit("equal tickets: everybody waits", "return p.num\n", "return p.num + 1\n"),
			mutant.Edit("equal tickets: nobody waits", "return p.num + 1", "return p.num"),
			mutant.Edit("a wait for choosing ends at once", "const never = 2", "const never = 1"),
			mutant.Edit("exit remembers the ticket", "p.at, p.num = releases, 0", "p.at = releases"),
			mutant.Edit("it begins with its second neighbour", "if j++; j == p.id {", "if j += 2; j == p.id {"),
		},
	})
}
