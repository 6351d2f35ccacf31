package history

import (
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// Who is inside shares by groups, and nobody with an exclusive one.
func TestExclusion(t *testing.T) {
	const in, out = protocol.InCrit, protocol.InTry
	for _, c := range []struct {
		users  Users
		groups []protocol.Group
		holds  bool
	}{
		{Users{in, out, in}, nil, false},
		{Users{in, out, out}, nil, true},
		{Users{in, out, in}, []protocol.Group{"", "", ""}, false},
		{Users{in, out, in}, []protocol.Group{"a", "b", "a"}, true},
		{Users{in, in, in}, []protocol.Group{"a", "b", "a"}, false},
		{Users{in, in, in}, []protocol.Group{"a", "a", "b"}, false},
		{Users{in, out, in}, []protocol.Group{"!a", "", "!a"}, false},
	} {
		if err := c.users.Exclusion(c.groups); (err == nil) != c.holds {
			t.Errorf("%v in %q: %v, want none: %t", c.users, c.groups, err, c.holds)
		}
	}
}
