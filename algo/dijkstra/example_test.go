package dijkstra_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/dijkstra"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// Ten processes that try once a second: at most N+9 accesses an entry.
func Example() {
	r, err := sim.Run(dijkstra.Algorithm, sim.Config{
		Config: protocol.Config{N: 10},
		Delay:  sim.Constant(time.Millisecond),
		Think:  sim.Constant(time.Second),
	})
	fmt.Println(r.AccessesPerEntry, "accesses an entry,", err)
	// Output: 18.995 accesses an entry, <nil>
}
