package history

import (
	"fmt"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// Who is inside shares by groups, and nobody with an exclusive one.
func TestExclusion(t *testing.T) {
	const in, out = protocol.InCrit, protocol.InTry
	name := func(id protocol.ID) string { return fmt.Sprint("p", id+1) }
	for _, c := range []struct {
		users  Users
		groups []protocol.Group
		want   string
	}{
		{Users{in, out, in}, nil, "exclusion: p1 and p3 are inside"},
		{Users{in, out, out}, nil, ""},
		{Users{in, out, in}, []protocol.Group{"", "", ""}, "exclusion: p1 and p3 are inside"},
		{Users{in, out, in}, []protocol.Group{"a", "b", "a"}, ""},
		{Users{in, in, in}, []protocol.Group{"a", "b", "a"}, "exclusion: p1 (a) and p2 (b) and p3 (a) are inside"},
		{Users{in, in, in}, []protocol.Group{"a", "a", "b"}, "exclusion: p1 (a) and p2 (a) and p3 (b) are inside"},
		{Users{in, out, in}, []protocol.Group{"!a", "", "!a"}, "exclusion: p1 (!a) and p3 (!a) are inside"},
	} {
		if got := c.users.Exclusion(name, c.groups); got != c.want {
			t.Errorf("%v in %q: %q, want %q", c.users, c.groups, got, c.want)
		}
	}
}
