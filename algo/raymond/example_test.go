package raymond_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/raymond"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// A hundred processes that try again at once: fewer than four messages an entry, in a tree
// of which one path has up to eleven edges.
func Example() {
	r, err := sim.Run(raymond.Algorithm, sim.Config{
		Config: protocol.Config{N: 100},
		Delay:  sim.Constant(time.Millisecond),
		Think:  sim.Constant(0),
	})
	fmt.Println(r.MessagesPerEntry, "messages an entry,", err)
	// Output: 3.9594 messages an entry, <nil>
}
