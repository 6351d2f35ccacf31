package sections_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/counters"
	"github.com/poundlock/poundlock/sections"
)

// A member that comes back gets all objects, and no session ends, although the epochs of all objects end at once, with votes
// and proposals that carry an operation of each, and then all states are asked for: each time more than a session with no
// room for objects may have.
func TestManyObjects(t *testing.T) {
	for _, test := range []struct{ objects, size int }{{64, 100 << 10}, {24, 240 << 10}} {
		t.Run(fmt.Sprint(test.objects, " of ", test.size), func(t *testing.T) {
			all := make([][]*counters.Store, 3) // by member and object
			c := startWith(t, 3, second, func(i int, c *sections.Config) {
				all[i] = make([]*counters.Store, test.objects)
				for k := range all[i] {
					all[i][k] = &counters.Store{}
					c.Objects[fmt.Sprint(k)] = all[i][k]
				}
			})
			var most int
			equal := func() {
				t.Helper()
				eventually(t, "equal copies", func() error {
					for i, n := range c.members {
						most = max(most, n.Stats().Node.Unacked)
						for k, s := range all[i] {
							if got := s.Applied(); got != 1 {
								return fmt.Errorf("copy %d of object %d has executed %d operations", i, k, got)
							}
						}
					}
					return nil
				})
			}
			for k := range test.objects {
				s := enterObject(t, c.members[0], fmt.Sprint(k))
				do(t, s, strings.Repeat("x", test.size))
				s.Exit()
			}
			equal()
			c.members[2].Close()
			c.again(2)
			equal()
			for i, n := range c.members {
				if k := n.Stats().Node.SessionsEnded["too_many"]; k > 0 {
					t.Errorf("member %d has dropped %d sessions", i, k)
				}
			}
			t.Logf("at most %d bytes seen in the sessions of a member", most)
		})
	}
}
