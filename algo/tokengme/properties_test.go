package tokengme

import (
	"fmt"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

func holds(t *testing.T, a protocol.Algorithm[Message], c check.Config) {
	t.Helper()
	v, err := check.Run(a, c)
	if err != nil || v.Verdict != check.Holds {
		t.Errorf("%q: %s is %s (%s): %v %s %q", a.Variant, v.Property, v.Verdict, v.Bounds, err, v.Reason, v.Trace)
		return
	}
	t.Logf("%q: %s states, %s", a.Variant, check.Group(v.States), v.Bounds)
}

// All forms, admissions and selections, users that give up, and several users at a process,
// of whom some want to be alone. Theorems 1, 6 and 7 of Mittal & Mohan 2007, and section 5.1.
func TestModels(t *testing.T) {
	all := func(c check.Config) check.Config { c.Properties = []string{"all"}; return c }
	// A request of who gives up stands, and may keep others from a session.
	gives := func(c check.Config) check.Config {
		c.Cancel, c.Properties = 1, check.Properties(Algorithm, []string{"all"})
		c.Properties = slices.DeleteFunc(c.Properties, func(name string) bool { return name == check.ConcurrentEntry })
		return c
	}
	told := func(c check.Config) check.Config { c.UntilTold = true; return all(c) }
	r := readWrite[1:]
	holds(t, Algorithm, all(model(2, twoGroups, 2)))
	holds(t, Algorithm, told(model(2, readWrite, 2)))
	holds(t, Several, told(model(2, sets, 1)))
	holds(t, Several, all(model(2, sets, 2)))
	holds(t, WithClients, gives(clients(readWrite, readWrite, readWrite)))
	holds(t, WithClients, all(clients(r, r, readWrite, sets[:1])))
	for _, c := range overlapping() {
		holds(t, ordered(WithClients), c)
	}
	if !lane.Long.Runs() {
		fmt.Println("SHORTENED: TestModels of tokengme explores its larger models with TEST_LANE=long")
		return
	}
	for admission := range int64(2) {
		for selection := range int64(3) {
			c := model(3, twoGroups, 2, 1, 1)
			c.Options = map[string]int64{"admission": admission, "selection": selection}
			holds(t, Algorithm, c)
		}
	}
	holds(t, Algorithm, model(3, readWrite, 2, 1, 1))
	holds(t, Algorithm, model(3, append(sets[:1:1], "2", "3"), 1))
	holds(t, Algorithm, model(4, twoGroups, 1, 1, 1, 0))
	holds(t, Algorithm, all(model(3, twoGroups, 1)))
	holds(t, Algorithm, told(model(3, readWrite, 1)))
	holds(t, Several, all(model(3, sets, 1)))
	holds(t, Bounded, all(model(2, twoGroups, unlimited)))
	holds(t, Bounded, model(3, twoGroups, 3, 1, 1))
	holds(t, WithClients, all(clients(readWrite, readWrite, readWrite, readWrite)))
}
