package check_test

import (
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
)

// The numbers of states of Ricart-Agrawala with three processes. Two entries
// with the clock on REPLY multiply the states by three: more clock values differ.
func TestRicartAgrawala(t *testing.T) {
	for _, c := range []struct {
		a                   protocol.Algorithm[ricartagrawala.Message]
		entries             int
		states, transitions int64
	}{
		{ricartagrawala.Printed, 1, 2822, 9005},
		{ricartagrawala.Printed, 2, 37229, 125212},
		{ricartagrawala.Printed, check.Unlimited, 2680, 9498},
		{ricartagrawala.Algorithm, 1, 4522, 14644},
		{ricartagrawala.Algorithm, 2, 104796, 372938},
		{ricartagrawala.Algorithm, check.Unlimited, 9797, 36570},
	} {
		v, err := check.Run(c.a, check.Config{Config: protocol.Config{N: 3}, Entries: []int{c.entries}})
		if err != nil {
			t.Fatal(err)
		}
		if v.Verdict != check.Holds || v.States != c.states || v.Transitions != c.transitions {
			t.Errorf("%q, %s: %s, %d states, %d transitions (%s), want holds, %d, %d",
				c.a.Variant, v.Bounds, v.Verdict, v.States, v.Transitions, v.Reason, c.states, c.transitions)
		}
	}
}
