package check_test

import (
	"fmt"
	"os"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

func ExampleRun() {
	v, err := check.Run(ricartagrawala.Algorithm, check.Config{
		Config:  protocol.Config{N: 3},
		Entries: []int{check.Unlimited},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(v.Verdict, v.States)
	fmt.Println(v.Bounds)
	// Output:
	// holds 9797
	// n=3, unlimited entries, unordered channels, no timers, counters shifted, exhaustive, chance that a fingerprint hid a state 3e-12
}
