package catalog_test

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/sim"
)

// An algorithm is found by its name, and any driver runs it.
func ExampleFind() {
	e := catalog.Find("raymond", "")
	r, err := e.Simulate(sim.Config{Config: protocol.Config{N: 7}, Entries: []int{100}})
	fmt.Println(r.Entries, "entries, violations", r.Violations, err)
	v, err := e.Check(check.Config{Config: protocol.Config{N: 3}})
	fmt.Println(v.Verdict, err)
	// Output:
	// 700 entries, violations [] <nil>
	// holds <nil>
}
