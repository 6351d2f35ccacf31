package wme_test

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// A holder may be suspected by mistake: then it is ejected and told, and no operation of its own is
// executed after that, at any copy of the object.
func Example() {
	v, err := check.Run(wme.Second, check.Config{
		Config: protocol.Config{N: 2}, Suspect: 1, Properties: []string{"all"},
	})
	fmt.Println(v.Verdict, err)
	// Output: holds <nil>
}
