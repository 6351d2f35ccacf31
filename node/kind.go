package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// A Kind is the kind of a lock, part of its identity on the wire: two locks of one
// name and different kinds would not exclude each other, so a name has one kind.
type Kind uint8

// The kinds of locks.
const (
	Mutex   Kind = 1 // one holder
	Group   Kind = 2 // holders of one group share
	Replica Kind = 3 // critical sections over a replicated object
)

// String is the name of the kind, as status shows it.
func (k Kind) String() string {
	switch k {
	case Mutex:
		return "mutex"
	case Group:
		return "group"
	case Replica:
		return "replica"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// noun is what a lock of this kind is called in a sentence.
func (k Kind) noun() string {
	switch k {
	case Mutex:
		return "a mutex"
	case Group:
		return "a group lock"
	case Replica:
		return "a replica"
	}
	return fmt.Sprintf("a lock of kind %d", uint8(k))
}

// checkHosts says what is wrong with Config.Hosts.
func (c *Config) checkHosts() error {
	if len(c.Hosts) == 0 {
		return errors.New("no algorithm to host")
	}
	first := c.anyHost().Info()
	for _, k := range slices.Sorted(maps.Keys(c.Hosts)) {
		if c.Hosts[k] == nil {
			return fmt.Errorf("no algorithm to host for kind %s", k)
		}
		if info := c.Hosts[k].Info(); info.Users == protocol.Nobody || info.Elector {
			return fmt.Errorf("%s: elections do not run on a network yet", info.Name)
		}
		if info := c.Hosts[k].Info(); info.Consensus {
			return fmt.Errorf("%s: a network has no consensus: package consensus makes an algorithm of it that has its own", info.Name)
		}
		if info := c.Hosts[k].Info(); info.Weak != (k == Replica) {
			return fmt.Errorf("%s does not serve locks of kind %s", info.Name, k)
		}
		if info := c.Hosts[k].Info(); info.Registers != nil {
			return fmt.Errorf("%s: a network has no registers (%w): package registers makes an algorithm of it that reads and writes by messages",
				info.Name, protocol.ErrRegisters)
		}
		if info := c.Hosts[k].Info(); info.Users != first.Users || info.Detector != first.Detector ||
			watched(info) != watched(first) {
			return fmt.Errorf("%s and %s cannot share sessions: they differ in their users or detector",
				first.Name, info.Name)
		}
	}
	return nil
}

// anyHost is the host of the lowest kind.
func (c *Config) anyHost() Host {
	return c.Hosts[slices.Min(slices.Collect(maps.Keys(c.Hosts)))]
}

// kinds are what the two ends must agree on where both have a kind.
func (n *Node) kinds() []transport.Kind {
	var all []transport.Kind
	for _, k := range slices.Sorted(maps.Keys(n.c.Hosts)) {
		all = append(all, transport.Kind{Number: uint8(k), Algorithm: n.algorithm(k)})
	}
	return all
}

// algorithm is what runs the locks of a kind here.
func (n *Node) algorithm(k Kind) string { return algorithm(n.c.Hosts[k]) }

func algorithm(h Host) string {
	info := h.Info()
	if info.Variant == "" {
		return info.Name
	}
	return info.Name + "/" + info.Variant
}
