package ra1_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/ra1"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// Ten processes that all want one group, and ten that want one of five: always 2(n-1)
// messages an entry; but those of one group are seldom inside together where there are others.
func Example() {
	for _, groups := range []int{1, 5} {
		r, err := sim.Run(ra1.Algorithm, sim.Config{
			Config: protocol.Config{N: 10},
			Groups: groups,
			Think:  sim.Constant(0),
			Hold:   sim.Constant(10 * time.Millisecond),
		})
		fmt.Printf("%v messages an entry, %.1f inside, %v\n", r.MessagesPerEntry, r.Concurrency.Mean, err)
	}
	// Output:
	// 18 messages an entry, 10.0 inside, <nil>
	// 18 messages an entry, 1.3 inside, <nil>
}
