package main

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/sim"
)

// TestProcesses: all users of each form enter as often as they want, where each process is a program, or its form is refused.
func TestProcesses(t *testing.T) {
	entries, sizes := 3, []int{3}
	if lane.CI.Adds(t, "100 entries") {
		entries = 100
	}
	if lane.Long.Adds(t, "2 000 entries of three and of five processes") {
		entries, sizes = 2000, []int{3, 5}
	}
	ran := 0
	for _, e := range catalog.All {
		i := e.Info()
		if lost := slices.Concat(i.Lacks, i.Refuted); slices.Contains(lost, "deadlock") || slices.Contains(lost, "exclusion") {
			t.Logf("%s (%s): not tried: it lacks %v", i.Name, cmp.Or(i.Variant, "as published"), lost)
			continue
		}
		for _, n := range sizes {
			c := sim.Config{
				Config: protocol.Config{N: n}, Entries: []int{entries}, Seed: 1,
				Delay: sim.Constant(0), Think: sim.Exponential(time.Millisecond), Hold: sim.Constant(0),
			}
			if i.Users == protocol.Clients {
				c.Clients = n
			}
			r, err := e.OnProcesses(t.Context(), c, func() *exec.Cmd { return clitest.Command("process", i.Name, "--variant="+i.Variant) })
			name := fmt.Sprintf("%s, %d", cmp.Or(i.Variant, "as published"), n)
			switch {
			case errors.Is(err, sim.ErrConfig):
				t.Logf("%s (%s): refused: %v", i.Name, name, err)
			case err != nil:
				t.Errorf("%s (%s): %v", i.Name, name, err)
			case r.ViolationCount > 0 || r.Entries != uint64(n*entries):
				t.Errorf("%s (%s): %d entries, violations %v", i.Name, name, r.Entries, r.Violations)
			default:
				t.Logf("%s (%s): %d entries, %.0f a second", i.Name, name, r.Entries, r.Throughput)
				ran++
			}
		}
	}
	if want := 20 * len(sizes); ran < want {
		t.Errorf("%d forms ran, want %d", ran, want)
	}
}
