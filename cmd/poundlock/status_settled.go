package main

import (
	"fmt"

	"github.com/poundlock/poundlock/algo/quorum"
	"github.com/poundlock/poundlock/server"
)

// await counts for each server the clients that may still trust its life before, and
// count supports that it has forgotten. Such a client has no session with it: it ends
// the old one, for all its locks, before it asks for another. Once the server has been
// up for the longest lease, the leases of its life before are over by every clock.
// Whoever has no session with any server counts on none.
func (s *clusterStatus) await(answers []server.Answer) {
	longest := map[string]int64{}             // lease, by group
	known := map[string]map[string]struct{}{} // clients, by group
	for i, a := range answers {
		g := s.Servers[i].Group
		longest[g] = max(longest[g], s.Servers[i].LeaseMS)
		for _, c := range a.Status.Sessions {
			if known[g] == nil {
				known[g] = map[string]struct{}{}
			}
			known[g][c.ID] = struct{}{}
		}
	}
	for i, a := range answers {
		x := &s.Servers[i]
		if !x.Reachable || x.UptimeMS > longest[x.Group] {
			continue
		}
		x.Awaited = len(known[x.Group])
		here := map[string]struct{}{}
		for _, c := range a.Status.Sessions {
			here[c.ID] = struct{}{}
		}
		x.Awaited -= len(here)
	}
}

// unsettled says why one more restart in a group could let two clients in: the servers
// whose last one somebody may not have heard of, and the supports that a holder lacks
// to a quorum, use up the losses that two quorums survive.
func (s *clusterStatus) unsettled(g *groupStatus) string {
	count, which := s.lack[g.Name], ""
	for _, x := range s.Servers {
		if x.Group == g.Name && x.Awaited > 0 {
			count++
			which = fmt.Sprintf("%s is up for %s, and %d %s not come back to it",
				x.Name, age(x.UptimeMS), x.Awaited, have(x.Awaited, "client"))
		}
	}
	if count < quorum.MemoryLosses(g.Servers, g.Quorum) {
		return ""
	}
	if which == "" {
		which = "a holder lacks supports"
	}
	return which
}
