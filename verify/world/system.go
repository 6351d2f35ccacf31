package world

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
)

// Unlimited is a number of entries without end.
const Unlimited = -1

// A System is what runs, and what its users do there: what check, hunt and sim have in common,
// and what the flags of poundlock-lab say. See [System.Complete] and [System.Flags]. Each list
// has one element for all users, or one for each.
type System struct {
	protocol.Config
	Clients    int   // of a client-server algorithm
	Entries    []int // tries of users, or Unlimited
	Operations []int // that a user issues in each of its sections, on a replicated object
	Wants      [][]protocol.Groups
	Down       []protocol.ID // members that are never up
	FIFO       bool          // channels keep their order; always so where Info.FIFO
	Registers  protocol.Semantics
}

// Limits are what a driver can run, and what it takes where a System does not say.
type Limits struct {
	Members, Clients, Entries, Operations int // at most; without Entries they are not looked at

	DefaultClients, DefaultEntries int

	Unlimited bool // entries may be
	Drawn     bool // the driver draws what is not given
}

// Names are those of the processes of a system.
func (s *System) Names(i protocol.Info) scenario.Names {
	return scenario.Names{Members: s.N, Clients: i.Users == protocol.Clients}
}

// Users are the first one of those who try, and how many there are.
func (s *System) Users(i protocol.Info) (first, n int) {
	switch i.Users {
	case protocol.Clients:
		return s.N, s.Clients
	case protocol.Nobody:
		return 0, 0
	}
	return 0, s.N
}

// Complete fills in what is not given, and refuses what the model of the algorithm does not have,
// except for its options.
func (s *System) Complete(i protocol.Info, l Limits) error {
	least, or := 1, ""
	if l.Drawn {
		least, or = 0, ", or 0 to draw it"
	}
	switch {
	case s.N < least || s.N > l.Members:
		return fmt.Errorf("%d members: want 1 to %d%s", s.N, l.Members, or)
	case i.Users == protocol.Clients && s.Clients == 0:
		s.Clients = l.DefaultClients
	case s.Clients == 0:
	case i.Users == protocol.Members:
		return fmt.Errorf("%d clients: it has none, its users are its members", s.Clients)
	case i.Users == protocol.Nobody:
		return fmt.Errorf("%d clients: it is an election, and has none", s.Clients)
	case s.Clients < 0 || s.Clients > l.Clients:
		return fmt.Errorf("%d clients: want 1 to %d%s", s.Clients, l.Clients, or)
	}
	if err := s.completeEntries(i, l); err != nil {
		return err
	}
	if err := s.completeOperations(i, l); err != nil {
		return err
	}
	if err := s.completeWants(i, l); err != nil {
		return err
	}
	config := s.Config
	config.N = max(1, s.N)
	_, semantics, err := i.Memory(config, s.Registers)
	if err == nil && i.Registers != nil && s.FIFO {
		err = fmt.Errorf("FIFO channels: %w", protocol.ErrRegisters)
	}
	if s.FIFO = s.FIFO || i.FIFO; !l.Drawn {
		s.Registers = semantics
	}
	return err
}

func (s *System) completeEntries(i protocol.Info, l Limits) (err error) {
	_, users := s.Users(i)
	if i.Users == protocol.Nobody {
		if slices.ContainsFunc(s.Entries, func(e int) bool { return e != 0 }) {
			return fmt.Errorf("entries %v: it is an election, which nobody enters; want none", s.Entries)
		}
		s.Entries = nil
		return nil
	}
	if l.Entries == 0 {
		return nil
	}
	if len(s.Entries) == 0 {
		s.Entries = []int{l.DefaultEntries}
	}
	least, or := 0, ""
	if l.Unlimited {
		least, or = Unlimited, ", or unlimited"
	}
	for _, e := range s.Entries {
		if e < least || e > l.Entries {
			return fmt.Errorf("%d entries: want 0 to %d%s", e, l.Entries, or)
		}
	}
	s.Entries, err = everybody(s.Entries, users, "numbers of entries")
	return err
}

func (s *System) completeOperations(i protocol.Info, l Limits) (err error) {
	_, users := s.Users(i)
	switch {
	case !i.Weak && len(s.Operations) > 0:
		return fmt.Errorf("operations %v in a section: want none, since there is no replicated object", s.Operations)
	case !i.Weak || l.Drawn && len(s.Operations) == 0:
		return nil
	case len(s.Operations) == 0:
		s.Operations = []int{1}
	}
	for _, k := range s.Operations {
		if k < 0 || k > l.Operations {
			return fmt.Errorf("%d operations in a section: want 0 to %d; for more of them, more entries", k, l.Operations)
		}
	}
	if !l.Drawn {
		s.Operations, err = everybody(s.Operations, users, "numbers of operations")
	}
	return err
}

// completeWants puts the groups of each set in order.
func (s *System) completeWants(i protocol.Info, l Limits) (err error) {
	if len(s.Wants) == 0 {
		return nil
	}
	if !i.Grouped {
		return fmt.Errorf("wants %v: its users want no groups, they exclude each other", s.Wants)
	}
	_, users := s.Users(i)
	wants := make([][]protocol.Groups, len(s.Wants))
	for u, list := range s.Wants {
		if len(list) == 0 {
			return fmt.Errorf("user %d of %d wants nothing: want a set of groups, or 0 entries", u+1, users)
		}
		for _, set := range list {
			if set, err = i.Wanted(string(set)); err != nil {
				return err
			}
			wants[u] = append(wants[u], set)
		}
	}
	if s.Wants = wants; !l.Drawn {
		s.Wants, err = everybody(wants, users, "lists of wants")
	}
	return err
}

// everybody is a list with one element for each user.
func everybody[T any](list []T, users int, what string) ([]T, error) {
	if len(list) == 1 {
		return slices.Repeat(list, users), nil
	}
	if len(list) != users {
		return nil, fmt.Errorf("%d %s for %d users: want one for all or one for each", len(list), what, users)
	}
	return list, nil
}

// Flags gives the flags of poundlock-lab that say what s is, except for options with their usual
// values.
func (s *System) Flags(i protocol.Info, usual func(protocol.Option) int64, give func(flag string, value any)) {
	if give("n", s.N); s.Clients > 0 {
		give("clients", s.Clients)
	}
	for _, o := range i.Options {
		if value, given := s.Options[o.Name]; given && value != usual(o) {
			give("option", o.Name+"="+o.Text(value))
		}
	}
	give("entries", Numbers(s.Entries))
	if len(s.Operations) > 0 && !slices.Equal(s.Operations, []int{1}) {
		give("operations", Numbers(s.Operations))
	}
	first, _ := s.Users(i)
	for k, list := range s.Wants {
		words := make([]string, len(list))
		for j, set := range list {
			words[j] = string(set)
		}
		give("wants", s.Names(i).Of(protocol.ID(first+k))+"="+strings.Join(words, "|"))
	}
	for _, id := range s.Down {
		give("down", s.Names(i).Of(id))
	}
	if s.FIFO && !i.FIFO {
		give("channels", "fifo")
	}
	if s.Registers == protocol.Safe {
		give("registers", s.Registers)
	}
}

// Numbers writes how many entries or operations users have, as flags take it: 3,1,unlimited.
func Numbers(list []int) string {
	words := make([]string, len(list))
	for i, k := range list {
		if words[i] = strconv.Itoa(k); k == Unlimited {
			words[i] = "unlimited"
		}
	}
	return strings.Join(words, ",")
}
