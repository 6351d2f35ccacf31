package hunt_test

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/hunt"
)

// With three servers one loss of memory is within no budget, so the hunt has to go beyond it.
// What it finds is made short, and is a scenario that others can replay.
func ExampleRun() {
	r, err := hunt.Run(sigma.Literal, hunt.Config{
		Config: protocol.Config{N: 3}, Clients: 2, Seed: 1, Runs: 10_000, Beyond: 1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range r.Violations {
		fmt.Println(v.Property)
	}
	// Output: exclusion
}
