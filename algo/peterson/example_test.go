package peterson_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/peterson"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// Two processes that try once a second: four accesses an entry.
func Example() {
	r, err := sim.Run(peterson.Algorithm, sim.Config{
		Config: protocol.Config{N: 2},
		Delay:  sim.Constant(time.Millisecond),
		Think:  sim.Constant(time.Second),
	})
	fmt.Println(r.AccessesPerEntry, "accesses an entry,", err)
	// Output: 4 accesses an entry, <nil>
}
