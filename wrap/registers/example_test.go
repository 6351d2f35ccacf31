package registers_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/algo/bakery"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/registers"
)

// The bakery with its registers shared out over ten processes that try once a second.
func Example() {
	a := registers.OverMessages(bakery.Awaiting, registers.Deferred)
	r, err := sim.Run(a, sim.Config{
		Config: protocol.Config{N: 10},
		Delay:  sim.Constant(time.Millisecond),
		Think:  sim.Constant(time.Second),
	})
	fmt.Println(r.MessagesPerEntry, "messages an entry,", r.Waiting.Mean, "ms from try to crit,", err)
	// Output: 54 messages an entry, 6 ms from try to crit, <nil>
}
