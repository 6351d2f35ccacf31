package tokenring_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/tokenring"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// Ten processes that seldom enter: what a token that never rests costs, and one that does.
func Example() {
	for _, a := range []protocol.Algorithm[tokenring.Message]{tokenring.Algorithm, tokenring.Resting} {
		r, err := sim.Run(a, sim.Config{
			Config: protocol.Config{N: 10},
			Delay:  sim.Constant(time.Millisecond),
			Think:  sim.Constant(10 * time.Second),
		})
		fmt.Printf("%.0f messages an entry, %.1f ms from try to crit, %v\n", r.MessagesPerEntry, r.Waiting.Mean, err)
	}
	// Output:
	// 999 messages an entry, 9.0 ms from try to crit, <nil>
	// 2 messages an entry, 2.0 ms from try to crit, <nil>
}
