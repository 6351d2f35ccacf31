package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/server"
)

// A groupStatus is one group of servers, which has quorums of its own.
type groupStatus struct {
	Name      string `json:"name"`
	Servers   int    `json:"servers"`
	Quorum    int    `json:"quorum"`
	Reachable int    `json:"reachable"`

	granting int // those of Reachable that do not drain
}

// groupsOf counts the servers of each group. A cluster without groups is one whose name
// is empty.
func groupsOf(answers []server.Answer) map[string]*groupStatus {
	groups := map[string]*groupStatus{}
	for _, a := range answers {
		name := slots.ShardOf(a.Server.Name)
		if groups[name] == nil {
			groups[name] = &groupStatus{Name: name}
		}
		g := groups[name]
		g.Servers++
		g.Quorum = slots.Quorum(g.Servers)
		if a.Err == nil {
			g.Reachable++
			if !a.Status.Draining {
				g.granting++
			}
		}
	}
	return groups
}

// needed is how many live supports keep a holder inside.
func (g *groupStatus) needed() int { return quorum.Silent(g.Servers, g.Quorum) + 1 }

// unreachable is the error of a cluster some group of which has no quorum, else nil.
func (s *clusterStatus) unreachable(answers []server.Answer) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		g := s.groups[name]
		if g.Reachable >= g.Quorum {
			continue
		}
		err := fmt.Errorf("%d of %d servers reachable, a quorum is %d", g.Reachable, g.Servers, g.Quorum)
		if name != "" {
			err = fmt.Errorf("group %s: %w", name, err)
		}
		errs = append(errs, err)
	}
	if errs == nil {
		return nil
	}
	var why []error
	for _, a := range answers {
		why = append(why, a.Err)
	}
	return &cli.Status{Code: cli.ExitNoQuorum, Hint: cmp.Or(tlsHint(why), serversHint), Err: errors.Join(errs...)}
}
