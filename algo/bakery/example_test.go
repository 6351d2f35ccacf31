package bakery_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/bakery"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// Ten processes that try once a second: 3N+1 accesses an entry.
func Example() {
	r, err := sim.Run(bakery.Algorithm, sim.Config{
		Config: protocol.Config{N: 10},
		Delay:  sim.Constant(time.Millisecond),
		Think:  sim.Constant(time.Second),
	})
	fmt.Println(r.AccessesPerEntry, "accesses an entry,", err)
	// Output: 31 accesses an entry, <nil>
}
