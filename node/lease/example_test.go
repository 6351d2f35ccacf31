package lease_test

import (
	"fmt"
	"time"

	"github.com/poundlock/poundlock/node/lease"
)

// The renewal leaves at 5 s and arrives 20 ms later, by clocks that agree here.
func Example() {
	terms := lease.Terms{Length: 10 * time.Second, Drift: 0.001, Margin: 500 * time.Millisecond}
	client := lease.Lease{Length: terms.Held()}
	server := lease.Lease{Length: terms.Length}
	client.Renew(5 * time.Second)
	server.Renew(5020 * time.Millisecond)
	fmt.Println(client.End(), server.End())
	// Output: 14.49s 15.02s
}
