package hunt_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/toys/cells"
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
		for seed := range uint64(5) {
			r, err := hunt.Run(cells.Blind, hunt.Config{Registers: registers, Seed: seed + 1, Runs: 50})
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
