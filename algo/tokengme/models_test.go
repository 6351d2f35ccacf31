package tokengme

import (
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
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

// overlapping are two readers at one member, who may overlap for ever, and a writer:
// elsewhere; where the primary token is at first; and at the only member.
func overlapping() []check.Config {
	r, w := readWrite[1:], readWrite[:1]
	list := []check.Config{clients(r, r, w), clients(w, w, r, r), clients(r, r, w)}
	entries := [][]int{{unlimited, unlimited, 1}, {1, 0, unlimited, unlimited}, {unlimited, unlimited, 1}}
	for i := range list {
		list[i].Entries, list[i].FIFO = entries[i], true
		list[i].Options = map[string]int64{"per": 2}
		list[i].Properties, list[i].MaxMemory = []string{check.Starvation}, 32<<20
	}
	list[2].N, list[2].Options = 1, nil
	return list
}

// ordered is an algorithm whose messages do not overtake each other, so that clients that
// come back for ever have finitely many on their way.
func ordered(a protocol.Algorithm[Message]) protocol.Algorithm[Message] {
	a.Stale = nil
	return a
}
