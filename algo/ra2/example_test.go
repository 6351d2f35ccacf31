package ra2_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// A hundred processes that each want one of two groups: about 2(n-1) messages an entry, and
// many are inside together.
func Example() {
	r, err := sim.Run(ra2.Algorithm, sim.Config{
		Config:  protocol.Config{N: 100},
		Entries: []int{10},
		Groups:  2,
		Think:   sim.Constant(0),
		Hold:    sim.Constant(20 * time.Millisecond),
		Delay:   sim.Exponential(10 * time.Millisecond),
	})
	fmt.Printf("%.0f messages an entry, %.0f inside, %v\n", r.MessagesPerEntry, r.Concurrency.Mean, err)
	// Output: 200 messages an entry, 21 inside, <nil>
}
