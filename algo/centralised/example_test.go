package centralised_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/centralised"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// Ten processes that try once a second: nine of them need three messages an entry, and
// the coordinator none.
func Example() {
	r, err := sim.Run(centralised.Algorithm, sim.Config{
		Config: protocol.Config{N: 10},
		Delay:  sim.Constant(time.Millisecond),
		Think:  sim.Constant(time.Second),
	})
	fmt.Println(r.Messages, "messages for", r.Entries, "entries:", r.MessagesPerEntry, "each,", err)
	// Output: 2700 messages for 1000 entries: 2.7 each, <nil>
}
