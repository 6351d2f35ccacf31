package membership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// Among many processes each of three crashes and comes back, one of them the coordinator, one
// fault at a time: all messages together are within the bounds.
func TestManyProcesses(t *testing.T) {
	for _, n := range []int{64, 65, 200} {
		var script string
		victims := []int{n, 1, n/2 + 1}
		for i, p := range victims {
			script += fmt.Sprintf("at %ds crash p%d\nat %ds recover p%d\n", 1+4*i, p, 3+4*i, p)
		}
		steps, err := scenario.Names{Members: n}.Parse(strings.NewReader(script))
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.Run(Wrap(tokengme.Algorithm), sim.Config{
			Config: protocol.Config{N: n}, Entries: []int{2}, Groups: 3, Faults: steps,
			Think: sim.Exponential(5 * time.Second), Hold: sim.Constant(100 * time.Millisecond),
		})
		if err != nil || r.ViolationCount > 0 {
			t.Fatalf("n = %d: %v %v", n, err, r.Violations)
		}
		requests, faults := int(r.Entries)+len(victims), 2*len(victims)
		if all, most := r.Messages+r.OverheadMessages, (2*n-1)*requests+5*(n-1)*faults; all > most {
			t.Errorf("n = %d: %d messages for %d requests and %d faults, want %d at most: %v", n, all, requests, faults, most, r.MessagesByKind)
		}
		for kind, most := range map[string]int{"NOTIFY": faults, "JOIN": faults / 2, "RESTART": faults, "DONE": faults, "START": faults, "RESUME": faults} {
			if got := r.MessagesByKind[kind]; got == 0 || got > most*(n-1) {
				t.Errorf("n = %d: %d messages %s, want 1 to %d", n, got, kind, most*(n-1))
			}
		}
		t.Logf("n = %d: %d entries, %v", n, r.Entries, r.MessagesByKind)
	}
}

// A process that is told that there is no majority, and tries again at once, lets time go on.
func TestToldWithoutEnd(t *testing.T) {
	steps, err := scenario.Names{Members: 3}.Parse(strings.NewReader("at 5ms partition p1 for 2s\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.Run(Wrap(tokengme.Algorithm), sim.Config{
		Config: protocol.Config{N: 3, Options: map[string]int64{tellOption: 1}}, Entries: []int{20}, Groups: 2, Faults: steps,
		Think: sim.Constant(0), Lease: 100 * time.Millisecond, Patience: 100_000,
	})
	if err != nil || r.ViolationCount > 0 || r.Entries != 60 || r.GaveUp < 100 {
		t.Errorf("%v %v, %d entries, gave up %d times", err, r.Violations, r.Entries, r.GaveUp)
	}
}
