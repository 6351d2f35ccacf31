package tokengme

import (
	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
)

// Lists of alternatives, for all users.
var (
	twoGroups = []protocol.Groups{"1", "2"}
	readWrite = []protocol.Groups{"!w", "r"}
	sets      = []protocol.Groups{"1", "1,2", "2"}
)

const unlimited = check.Unlimited

// model is one of n processes whose users want one of some alternatives, for all
// properties.
func model(n int, wants []protocol.Groups, entries ...int) check.Config {
	return check.Config{
		Config: protocol.Config{N: n}, Entries: entries, Wants: [][]protocol.Groups{wants}, MaxMemory: 512 << 20,
	}
}

// clients are users of two members, each with alternatives of its own.
func clients(wants ...[]protocol.Groups) check.Config {
	return check.Config{
		Config: protocol.Config{N: 2}, Clients: len(wants), Wants: wants, MaxMemory: 512 << 20,
	}
}
