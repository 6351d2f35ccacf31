package api

import (
	"errors"
	"time"

	"github.com/poundlock/poundlock"
	pb "github.com/poundlock/poundlock/api/poundlockv1"
)

// lose is called when the context of a section ends: by the loss of a lock, or
// because the section was left. What is lost is left only when the last promise
// is over, for the next user of this process could get in before.
func (s *Service) lose(g *grant, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.state != pb.State_STATE_HELD {
		return
	}
	g.state, g.lost, g.reason = pb.State_STATE_LOST, true, plain(cause)
	g.session.tell(g)
	x := g.session
	s.log.Info("grant lost", "session", x.shown(), "label", x.label, "grant", g.id, "reason", g.reason)
	time.AfterFunc(time.Until(g.promised), func() { s.abandon(g) })
}

// abandon leaves the section of a lost grant, if its client has not.
func (s *Service) abandon(g *grant) {
	s.mu.Lock()
	c := s.take(g)
	s.mu.Unlock()
	_ = s.giveBack(c) // the client has been told
}

// release ends a grant. To one that has been released it says again whether it was
// lost before.
func (s *Service) release(x *session, id string) error {
	s.mu.Lock()
	g := x.find(id)
	if g == nil {
		s.mu.Unlock()
		return unknownGrant(id)
	}
	again := g.state == pb.State_STATE_RELEASED
	var c section
	if !again {
		c = s.leave(g)
	}
	s.mu.Unlock()
	if again {
		<-g.left // by another call, which does not wait for anybody
	} else {
		s.unlock(g, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.lost {
		return lostError(g.proto())
	}
	return nil
}

// leave ends a grant for good, and unlock has to follow. The grant can be released
// again, and its id is used up. mu is held.
func (s *Service) leave(g *grant) section {
	c := s.forget(g)
	g.names, g.tokens, g.wants, g.group = nil, nil, nil, "" // what is remembered should be small
	x := g.session
	x.released = append(x.released[max(0, len(x.released)+1-maxReleased):], g)
	return c
}

// unlock ends what leave has begun, with the section that it returned.
func (s *Service) unlock(g *grant, c section) {
	err := s.giveBack(c)
	s.mu.Lock()
	if errors.Is(err, poundlock.ErrLost) && !g.lost {
		g.lost, g.reason = true, plain(err)
	}
	s.mu.Unlock()
	close(g.left)
}

// forget ends a grant as if it had never been, and returns the section to give
// back, nil if there is none. mu is held.
func (s *Service) forget(g *grant) section {
	c := s.take(g)
	g.state = pb.State_STATE_RELEASED
	g.cancel()
	delete(g.session.grants, g.id)
	s.locks -= len(g.names)
	g.session.tell(g)
	return c
}

// take takes the section out of a grant, nil if there is none. Shutdown waits until
// giveBack has had it. mu is held.
func (s *Service) take(g *grant) section {
	c := g.section
	g.section = nil
	if c != nil {
		s.running.Add(1)
	}
	return c
}

// giveBack unlocks what take returned.
func (s *Service) giveBack(c section) error {
	if c == nil {
		return nil
	}
	defer s.running.Done()
	return c.Unlock()
}
