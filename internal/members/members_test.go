package members_test

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/members"
	"github.com/poundlock/poundlock/transport"
)

// Ids follow the names, whatever the order of the list; and what is wrong is said.
func TestTable(t *testing.T) {
	list := []transport.Slot{{Name: "b", Addr: "h:2"}, {Name: "a", Addr: "h:1"}, {Name: "c"}}
	table, id, err := members.Table(list, "b")
	if err != nil || id != 1 || table[0].Name != "a" || table[1] != list[0] || list[0].Name != "b" {
		t.Errorf("%v, %d, %v", table, id, err)
	}
	for want, c := range map[string]struct {
		list []transport.Slot
		name string
	}{
		`"d" is not among the members: a, b, c`: {list, "d"},
		`"d" is not among the members: none`:    {nil, "d"},
		`name "a" appears twice`:                {append(list[:2:2], list[1]), "a"},
		`name "": want 1 to 255 bytes`:          {append(list[:2:2], transport.Slot{}), "a"},
	} {
		if _, _, err := members.Table(c.list, c.name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
