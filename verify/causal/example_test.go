package causal_test

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/lamport"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
)

// Lamport's algorithm lets users in by the order in which they tried, as far as one try happened
// before another one.
func ExampleOf() {
	v, err := check.Run(causal.Of(lamport.Algorithm), check.Config{
		Config: protocol.Config{N: 2}, Properties: []string{causal.Order},
	})
	fmt.Println(v.Verdict, err)
	// Output: holds <nil>
}
