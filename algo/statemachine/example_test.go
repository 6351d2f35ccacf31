package statemachine_test

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/statemachine"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// Each entry, operation and exit is a command that a majority decides.
func Example() {
	r, err := sim.Run(statemachine.Algorithm, sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{10},
	})
	fmt.Println(r.Entries, "entries, violations", r.Violations, err)
	// Output: 30 entries, violations [] <nil>
}
