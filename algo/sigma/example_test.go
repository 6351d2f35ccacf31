package sigma_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// Fifty clients want the lock of four servers, of which one after the other loses its memory: four
// messages a server an entry, and two message delays from an exit to the next entry.
func Example() {
	r, err := sim.Run(sigma.Algorithm, sim.Config{
		Config: protocol.Config{N: 4}, Clients: 50, Entries: []int{20},
		Think:        sim.Constant(0),
		Delay:        sim.Constant(time.Millisecond),
		AmnesiaEvery: 2 * time.Second,
	})
	fmt.Printf("%.0f messages an entry, %v ms from exit to crit, violations %v, %v\n",
		r.MessagesPerEntry, r.SyncDelay.P50, r.Violations, err)
	// Output: 16 messages an entry, 2 ms from exit to crit, violations [], <nil>
}
