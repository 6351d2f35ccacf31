package scenario_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/poundlock/poundlock/verify/scenario"
)

func Example() {
	names := scenario.Names{Members: 3, Clients: true}
	steps, err := names.Parse(strings.NewReader("try c1\ndeliver c1 s1 REQUEST(1)\n"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	for _, s := range steps {
		fmt.Println(s.Verb, s.Procs, names.Format(s))
	}
	// Output:
	// try [3] try c1
	// deliver [3 0] deliver c1 s1 REQUEST(1)
}
