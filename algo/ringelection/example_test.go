package ringelection_test

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/ringelection"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// Three processes of which one crashes: in the end the others follow the highest of them, with
// no bound on any delay.
func Example() {
	v, err := check.Run(ringelection.Algorithm, check.Config{
		Config: protocol.Config{N: 3}, Crash: 1, Properties: []string{"all"},
	})
	fmt.Println(v.Verdict, "in", v.States, "states,", err)
	// Output: holds in 36 states, <nil>
}
