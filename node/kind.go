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
	// Election is no lock: who leads, at Config.Leader. A node has one.
	Election Kind = 4
)

type kindTexts map[Kind]string

var (
	kindNames = kindTexts{Mutex: "mutex", Group: "group", Replica: "replica", Election: "election"}
	kindNouns = kindTexts{Mutex: "a mutex", Group: "a group lock", Replica: "a replica", Election: "an election"}
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
		info := c.Hosts[k].Info()
		for _, o := range info.Options {
			if o.Local != "" && info.Option(c.System, o.Name) != o.Default(c.System) {
				return fmt.Errorf("%s: option %s=%d does not run on a network: %s", info.Name, o.Name, c.System.Options[o.Name], o.Local)
			}
		}
		switch {
		case info.Elector:
			return fmt.Errorf("%s needs an election beside it: package withleader makes an algorithm of it that has its own", info.Name)
		case info.Consensus:
			return fmt.Errorf("%s: a network has no consensus: package consensus makes an algorithm of it that has its own", info.Name)
		case info.Among:
			return fmt.Errorf("%s: its members talk to clients and to each other, and members of a network do one of the two", algorithm(c.Hosts[k]))
		case info.Weak != (k == Replica) || (info.Users == protocol.Nobody) != (k == Election):
			return fmt.Errorf("%s does not serve locks of kind %s", info.Name, k)
		case info.Registers != nil:
			return fmt.Errorf("%s: a network has no registers (%w): package registers makes an algorithm of it that reads and writes by messages",
				info.Name, protocol.ErrRegisters)
		case info.Users != first.Users || info.Detector != first.Detector || comeBack(&info) != comeBack(&first):
			return fmt.Errorf("%s and %s cannot share sessions: they differ in their users or detector", first.Name, info.Name)
		}
	}
	return nil
}

// anyKind is the lowest kind.
func (c *Config) anyKind() Kind { return slices.Min(slices.Collect(maps.Keys(c.Hosts))) }

// anyHost is the host of the lowest kind.
func (c *Config) anyHost() Host { return c.Hosts[c.anyKind()] }

// kinds are what the two ends must agree on where both have a kind.
func (n *Node) kinds() []transport.Kind {
	var all []transport.Kind
	for _, k := range slices.Sorted(maps.Keys(n.c.Hosts)) {
		all = append(all, transport.Kind{Number: uint8(k), Algorithm: n.agreed(k)})
	}
	return all
}

// agreed is what the two ends must agree on of a kind: the algorithm, and among members its options.
func (n *Node) agreed(k Kind) string {
	text := n.algorithm(k)
	if n.roles.info.Users != protocol.Clients {
		for _, option := range slices.Sorted(maps.Keys(n.c.System.Options)) {
			text += fmt.Sprintf(" %s=%d", option, n.c.System.Options[option])
		}
	}
	return text
}

// algorithm is what runs the locks of a kind here.
func (n *Node) algorithm(k Kind) string { return algorithm(n.c.Hosts[k]) }

func algorithm(h Host) string { return h.Info().Form() }
