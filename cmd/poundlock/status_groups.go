package main

import (
	"errors"
	"fmt"

	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/server"
)

// A groupStatus is one group of servers, which has quorums of its own.
type groupStatus struct {
	Name      string `json:"name"`
	Servers   int    `json:"servers"`
	Quorum    int    `json:"quorum"`
	Reachable int    `json:"reachable"`
}

// groupsOf counts the servers of each group. A cluster without groups is one whose name
// is empty.
func groupsOf(answers []server.Answer) map[string]*groupStatus {
	groups := map[string]*groupStatus{}
	for _, a := range answers {
		name := slots.GroupOf(a.Server.Name)
		if groups[name] == nil {
			groups[name] = &groupStatus{Name: name}
		}
		g := groups[name]
		g.Servers++
		g.Quorum = slots.Quorum(g.Servers)
		if a.Err == nil {
			g.Reachable++
		}
	}
	return groups
}

// unreachable is the error of a cluster some group of which has no quorum, else nil.
func (s clusterStatus) unreachable() error {
	if len(s.Groups) == 0 && s.Reachable < s.Quorum {
		return fmt.Errorf("%d of %d servers reachable, a quorum is %d", s.Reachable, len(s.Servers), s.Quorum)
	}
	var errs []error
	for _, g := range s.Groups {
		if g.Reachable < g.Quorum {
			errs = append(errs, fmt.Errorf("group %s: %d of %d servers reachable, a quorum is %d",
				g.Name, g.Reachable, g.Servers, g.Quorum))
		}
	}
	return errors.Join(errs...)
}
