package api

import (
	"time"

	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// promise says for how long the grants are certain to be held, by what the client
// can know: it counts from before it sent its request, and its clock and this one
// differ in rate by less than a thousandth. It is 0 without grants.
func (s *Service) promise(grants ...*grant) time.Duration {
	var least time.Duration
	for i, g := range grants {
		d := s.certain(g)
		if i == 0 || d < least {
			least = d
		}
	}
	return least
}

func (s *Service) certain(g *grant) time.Duration {
	s.mu.Lock()
	c := g.section
	s.mu.Unlock()
	if c == nil {
		return 0
	}
	end := c.LeaseEnd() // not under mu
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	d := min(g.session.lease, end.Sub(now))
	d -= d / 1000
	if g.state != pb.State_STATE_HELD || s.isClosing() || d <= 0 {
		return 0
	}
	g.told = true
	if until := now.Add(d); until.After(g.promised) {
		g.promised = until
	}
	return d
}

// describe is a grant as its client sees it, with a promise.
func (s *Service) describe(g *grant) *pb.Grant {
	d := s.promise(g)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := g.proto()
	if g.state == pb.State_STATE_HELD {
		p.CertainMs = milliseconds(d)
	}
	return p
}

// proto is a grant without a promise. Service.mu is held.
func (g *grant) proto() *pb.Grant {
	return &pb.Grant{GrantId: g.id, Names: g.names, State: g.state, Tokens: g.tokens, Group: g.group, Reason: g.reason}
}
