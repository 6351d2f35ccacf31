package catalog_test

import (
	"slices"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
)

// The property order can be asked for by name wherever messages are sent, and is among
// all where the algorithm claims it.
func TestOrder(t *testing.T) {
	for _, e := range catalog.All {
		i := e.Info()
		if i.Users == protocol.Nobody {
			continue // nobody enters
		}
		c := check.Config{Config: protocol.Config{N: 1}}
		for _, asked := range []string{"all", causal.Order, check.Exclusion} {
			c.Properties = []string{asked}
			v, err := e.Check(c)
			if asked == causal.Order && i.Registers != nil {
				if err == nil {
					t.Errorf("%s: order is judged by registers", i.Name)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			has := slices.ContainsFunc(v.Properties, func(p check.Property) bool { return p.Property == causal.Order })
			if want := asked == causal.Order || asked == "all" && i.Ordered; has != want {
				t.Errorf("%s %q, --property %s: order is among the properties: %v, want %v", i.Name, i.Variant, asked, has, want)
			}
		}
	}
}
