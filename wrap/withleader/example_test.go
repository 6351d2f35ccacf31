package withleader_test

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/bully"
	"github.com/poundlock/poundlock/algo/centralised"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/wrap/withleader"
)

// A coordinator that crashes has a successor, which the bully algorithm elects.
func ExampleWith() {
	v, err := check.Run(withleader.With(centralised.Successor, bully.Algorithm), check.Config{
		Config: protocol.Config{N: 3}, Entries: []int{1, 0, 0}, Crash: 1,
	})
	fmt.Println(v.Verdict, err)
	// Output: holds <nil>
}
