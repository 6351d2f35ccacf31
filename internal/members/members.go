// Package members is the list of the members of a system as those who configure them write it: who is there, and which
// id each has.
package members

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// Sorted are members in the order of ids, which is that of their names: it does not matter in which order anybody
// lists them. Two processes that number them differently would not exclude each other.
func Sorted(list []transport.Slot) []transport.Slot {
	return slices.SortedFunc(slices.Values(list), func(a, b transport.Slot) int { return strings.Compare(a.Name, b.Name) })
}

// Find is the place of a member in a list, or an error that says which there are.
func Find(list []transport.Slot, name string) (protocol.ID, error) {
	var names []string
	for id, m := range list {
		if m.Name == name {
			return protocol.ID(id), nil
		}
		names = append(names, m.Name)
	}
	return 0, fmt.Errorf("%q is not among the members: %s", name, cmp.Or(strings.Join(names, ", "), "none"))
}

// Table is a list in the order of ids, with the id of the member that is called name. The error says what is wrong with
// the names.
func Table(list []transport.Slot, name string) ([]transport.Slot, protocol.ID, error) {
	table := Sorted(list)
	if err := (transport.Table{Slots: table}).Check(); err != nil {
		return nil, 0, err
	}
	id, err := Find(table, name)
	return table, id, err
}
