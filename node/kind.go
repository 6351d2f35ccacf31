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

type kindTexts map[Kind]string

var (
	kindNames = kindTexts{Mutex: "mutex", Group: "group", Replica: "replica"}
	kindNouns = kindTexts{Mutex: "a mutex", Group: "a group lock", Replica: "a replica"}
)

// String is the name of the kind, as status shows it.
func (k Kind) String() string { return kindNames.of(k, "kind %d") }

// noun is what a lock of this kind is called in a sentence.
func (k Kind) noun() string { return kindNouns.of(k, "a lock of kind %d") }

func (texts kindTexts) of(k Kind, other string) string {
	if text, ok := texts[k]; ok {
		return text
	}
	return fmt.Sprintf(other, uint8(k))
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
		switch info := c.Hosts[k].Info(); {
		case info.Users == protocol.Nobody || info.Elector:
			return fmt.Errorf("%s: elections do not run on a network yet", info.Name)
		case info.Consensus:
			return fmt.Errorf("%s: a network has no consensus: package consensus makes an algorithm of it that has its own", info.Name)
		case info.Weak != (k == Replica):
			return fmt.Errorf("%s does not serve locks of kind %s", info.Name, k)
		case info.Registers != nil:
			return fmt.Errorf("%s: a network has no registers (%w): package registers makes an algorithm of it that reads and writes by messages",
				info.Name, protocol.ErrRegisters)
		case info.Users != first.Users || info.Detector != first.Detector || watched(&info) != watched(&first):
			return fmt.Errorf("%s and %s cannot share sessions: they differ in their users or detector", first.Name, info.Name)
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
