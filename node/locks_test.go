package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/node"
)

// TestLocksPage: pages of any size, put together, are all locks with the prefix, in
// order and with their holders.
func TestLocksPage(t *testing.T) {
	host := node.HostOf(sigma.Algorithm)
	servers, peers := clusterAt(t, 4, false, host, nil)
	c := clients(t, 1, peers, host, nil)[0]
	var want []string
	for i := range 100 {
		name := fmt.Sprintf("%c%d", 'a'+i%3, i)
		p := newProbe()
		must(t, c.Try(node.Mutex, name, p, false))
		<-p.crit
		want = append(want, name)
	}
	slices.Sort(want)
	eventually(t, "the server knows all", func() bool { return len(servers[0].Locks()) == len(want) })
	for _, prefix := range []string{"", "b", "none"} {
		with := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return !strings.HasPrefix(s, prefix) })
		for _, limit := range []int{0, 1, 7, 33, 1000} {
			var got []string
			after := ""
			for {
				page := servers[0].LocksPage(node.Page{Prefix: prefix, After: after, Limit: limit})
				if limit > 0 && len(page) > limit {
					t.Fatalf("%d locks on a page of %d", len(page), limit)
				}
				for _, l := range page {
					if len(l.Standing.Holders) != 1 || l.Standing.Holders[0].User != c.ID() || l.Kind != node.Mutex {
						t.Errorf("%+v", l)
					}
					got = append(got, l.Name)
				}
				if limit == 0 || len(page) == 0 {
					break
				}
				after = page[len(page)-1].Name
			}
			if !slices.Equal(got, with) {
				t.Errorf("prefix %q, pages of %d: %q, want %q", prefix, limit, got, with)
			}
		}
	}
}
