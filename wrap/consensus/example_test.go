package consensus_test

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/consensus"
)

// An algorithm that needs consensus gets Paxos among its own processes in place of a service.
func ExampleWith() {
	r, err := sim.Run(consensus.With(wme.Second), sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{10},
	})
	fmt.Println(r.Entries, "entries, violations", r.Violations, err)
	// Output: 30 entries, violations [] <nil>
}
