package hunt_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/toys/cells"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/hunt"
)

// A hunt finds what toy locks lose, as a trace that the checker takes too, and nothing in
// what holds.
func TestRegisters(t *testing.T) {
	for _, test := range []struct {
		alg       protocol.Algorithm[struct{}]
		registers protocol.Semantics
		property  string
		steps     int // of the shortest trace
	}{
		{cells.Peterson, "", "", 0},
		{cells.Peterson, protocol.Safe, "", 0},
		{cells.Impolite, "", check.Exclusion, 7},
		{cells.TestAndSet, "", check.Exclusion, 6},
		{cells.Courteous, "", check.Deadlock, 4},
		{cells.Trusting, protocol.Safe, check.Exclusion, 8},
	} {
		c := hunt.Config{Config: protocol.Config{N: 2}, Registers: test.registers, Seed: 1, Runs: 300}
		r, err := hunt.Run(test.alg, c)
		if err != nil {
			t.Fatal(err)
		}
		name := test.alg.Name + " " + string(test.registers)
		switch {
		case test.property == "" && len(r.Violations) > 0:
			t.Errorf("%s: %+v", name, r.Violations[0])
		case test.property == "" && r.Entries < 100:
			t.Errorf("%s: only %d entries", name, r.Entries)
		case test.property != "" && len(r.Violations) == 0:
			t.Errorf("%s: no violation in %d runs", name, r.Runs)
		case test.property == "":
		default:
			v := r.Violations[0]
			if v.Property != test.property || !v.Replayed || len(v.Trace) > test.steps+2 {
				t.Errorf("%s: %s (%s), replayed %v, want %s in %d steps:\n%s",
					name, v.Property, v.Reason, v.Replayed, test.property, test.steps, strings.Join(v.Trace, "\n"))
			}
			if test.registers == protocol.Safe && v.Check.Registers != protocol.Safe {
				t.Errorf("%s: its trace is one of %s registers", name, v.Check.Registers)
			}
		}
	}
}

// What means nothing without messages is refused.
func TestRegisterConfig(t *testing.T) {
	c := hunt.Config{Config: protocol.Config{N: 2}, FIFO: true, Runs: 1}
	if _, err := hunt.Run(cells.Peterson, c); !errors.Is(err, hunt.ErrConfig) || !errors.Is(err, protocol.ErrRegisters) {
		t.Errorf("FIFO channels: %v", err)
	}
	c.FIFO, c.Registers = false, "regular"
	if _, err := hunt.Run(cells.Peterson, c); !errors.Is(err, hunt.ErrConfig) {
		t.Errorf("regular registers: %v", err)
	}
}

// What is found with many processes is shown with as few as it takes.
func TestFewerShare(t *testing.T) {
	for _, registers := range []protocol.Semantics{protocol.Atomic, protocol.Safe} {
		for seed := range lane.Of[uint64](t, "seeds", 2, 5, 5) {
			r, err := hunt.Run(blindLock, hunt.Config{Registers: registers, Seed: seed + 1, Runs: 50})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Violations) == 0 {
				t.Fatalf("%s, seed %d: no violation", registers, seed+1)
			}
			v := r.Violations[0]
			// try, read and write of each.
			if v.Property != check.Exclusion || !v.Replayed || v.N != 2 || len(v.Trace) != 6 {
				t.Errorf("%s, seed %d: %s, n=%d:\n%s", registers, seed+1, v.Property, v.N, strings.Join(v.Trace, "\n"))
			}
		}
	}
}

// blindLock is a lock for any number of processes, and wrong with any from two on: a process that tries looks at
// the flags of all others, and raises its own only when it has found them down.
var blindLock = func() protocol.Algorithm[struct{}] {
	a := cells.Of("blind", nil)
	a.Registers = func(c protocol.Config) (list []protocol.Register) {
		for i := range c.N {
			list = append(list, protocol.Register{Name: fmt.Sprintf("flag[%d]", i+1), Owner: protocol.ID(i), Most: 1})
		}
		return list
	}
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[struct{}] {
		return cells.Of("blind", blind(c.N)).New(id, c)
	}
	return a
}()

func blind(n int) cells.Program {
	const rest, looks, raises, lowers = 0, 1, 2, 3
	return func(p *cells.Process, ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
		look := func(j int) {
			if j == int(p.ID) {
				j++
			}
			p.PC = looks
			if j < n {
				out.Read(j)
				return
			}
			p.PC = raises
			out.Write(int(p.ID), 1)
		}
		switch {
		case ev.Kind == protocol.Try:
			look(0)
		case ev.Kind == protocol.Exit:
			p.PC = lowers
			out.Write(int(p.ID), 0)
		case ev.Kind != protocol.Value:
		case p.PC == looks && ev.Arg == 1:
			look(0)
		case p.PC == looks:
			look(int(ev.From) + 1)
		case p.PC == raises:
			p.PC = rest
			out.Crit(0)
		case p.PC == lowers:
			p.PC = rest
			out.Rem()
		}
	}
}
