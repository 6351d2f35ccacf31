package membership_test

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/wrap/membership"
)

// Whoever holds the token of Suzuki and Kasami's algorithm may crash: those who are left begin a
// new instance of it, with a new token.
func ExampleWrap() {
	v, err := check.Run(membership.Wrap(suzukikasami.Algorithm), check.Config{
		Config: protocol.Config{N: 3}, Entries: []int{1, 0, 0}, Crash: 1,
	})
	fmt.Println(v.Verdict, err)
	// Output: holds <nil>
}
