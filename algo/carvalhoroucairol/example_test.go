package carvalhoroucairol_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/carvalhoroucairol"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// One of two processes enters a hundred times, the other one once in between: two messages
// for the first entry, two for that of the other, and two to get its permission again.
func Example() {
	r, err := sim.Run(carvalhoroucairol.Algorithm, sim.Config{
		Config:  protocol.Config{N: 2},
		Entries: []int{100, 1},
		Think:   sim.Constant(time.Second),
	})
	fmt.Println(r.Messages, "messages for", r.Entries, "entries,", err)
	// Output: 6 messages for 101 entries, <nil>
}
