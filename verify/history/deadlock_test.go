package history_test

import (
	"fmt"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// Who waits for what is said of all, and why they wait on.
func TestDeadlock(t *testing.T) {
	name := func(id protocol.ID) string { return fmt.Sprintf("p%d", id+1) }
	for _, test := range []struct {
		users  history.Users
		info   protocol.Info
		flying int
		want   string
	}{
		{history.Users{protocol.InTry, protocol.InRem}, protocol.Info{}, 1, "deadlock: p1 tries, and nothing that must happen changes the state"},
		{history.Users{protocol.InTry, protocol.InCrit, protocol.InTry}, protocol.Info{}, 0, "deadlock: p1, p3 try, and no message is on its way"},
		{
			history.Users{protocol.InExit, protocol.InTry, protocol.InIssue, protocol.InExit},
			protocol.Info{},
			0,
			"deadlock: p2 tries; p3 waits for the outcome of its operation; p1, p4 wait to be told rem, and no message is on its way",
		},
		{history.Users{protocol.InTry}, protocol.Info{Weak: true}, 0, "deadlock: p1 tries, and nothing that must happen changes the state"},
	} {
		if got := test.users.Deadlock(name, test.info, test.flying); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}
