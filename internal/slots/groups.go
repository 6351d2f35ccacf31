package slots

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/node"
)

// maxGroups bounds the names of all groups together, which every handshake carries.
const maxGroups = 1000

// A Group is a set of servers that serve a part of the lock names, with quorums of
// their own. It has no name where it is the only one.
type Group struct {
	Name    string
	Servers []node.Peer // in the order of ids
}

// Groups are all groups of a cluster, in the bytewise order of their names.
type Groups []Group

// GroupOf is the group that the name of a server says, "" for none.
func GroupOf(server string) string {
	group, _, ok := strings.Cut(server, "/")
	if !ok {
		return ""
	}
	return group
}

// Split returns the groups of a table that Check has returned: there the servers of a
// group stand together, because their names begin alike.
func Split(table []node.Peer) Groups {
	var all Groups
	for _, p := range table {
		name := GroupOf(p.Name)
		if len(all) == 0 || all[len(all)-1].Name != name {
			all = append(all, Group{Name: name})
		}
		g := &all[len(all)-1]
		g.Servers = append(g.Servers, p)
	}
	slices.SortFunc(all, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// String is the list of names, on which all processes must agree: one that knows of
// other groups would look for some locks elsewhere.
func (all Groups) String() string {
	var names []string
	for _, g := range all {
		names = append(names, g.Name)
	}
	return strings.Join(names, ",")
}

// Of returns the index of the group that a lock belongs to, by rendezvous hashing: the
// one with the highest score, and of equal ones the first by name. When a group comes
// or goes, only those locks move that it gets or had.
func (all Groups) Of(lock string) int {
	best, most := 0, uint64(0)
	for i, g := range all {
		if s := score(g.Name, lock); i == 0 || s > most {
			best, most = i, s
		}
	}
	return best
}

// score is FNV-1a of the group's name, a zero byte and the lock's name, mixed by the
// finalizer of MurmurHash3: FNV alone leaves the high bits, which decide, to the bytes
// that come first.
func score(group, lock string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, group)
	h.Write([]byte{0})
	io.WriteString(h, lock)
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}

// check says what is wrong with the groups of a table.
func (all Groups) check(noAmnesia bool) error {
	if len(all) > 1 {
		for i, g := range all {
			if other := all[(i+1)%len(all)]; g.Name == "" {
				return fmt.Errorf("server %s is in no group, and %s is in group %s: give all servers a group, or none",
					g.Servers[0].Name, other.Servers[0].Name, other.Name)
			}
		}
	}
	if names := all.String(); len(names) > maxGroups {
		return fmt.Errorf("the names of the groups have %d bytes together: want at most %d", len(names), maxGroups)
	}
	for _, g := range all {
		if len(g.Servers) >= 4 || noAmnesia {
			continue
		}
		if g.Name == "" {
			return fmt.Errorf("%d servers: %w", len(g.Servers), ErrTooFew)
		}
		return fmt.Errorf("%d servers in group %s: %w", len(g.Servers), g.Name, ErrTooFew)
	}
	return nil
}

// checkName says what is wrong with the name of a server.
func checkName(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '=' || r == ',' }) {
		return errors.New("want a word without spaces, commas and equal signs")
	}
	group, rest, grouped := strings.Cut(name, "/")
	if grouped && (group == "" || rest == "" || strings.Contains(rest, "/")) {
		return errors.New("want NAME, or GROUP/NAME")
	}
	return nil
}
