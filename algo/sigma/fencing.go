package sigma

import (
	"cmp"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// Fencing tokens: a client enters with one that a quorum has recorded, and that is larger than all
// that were.

// win has m supports. Without fencing that is all; else the client enters with
// a token that m servers have recorded and that is larger than all they knew. A server
// whose clock is ahead, or that has just started, may know of tokens that are larger than
// need be: so before the client has one recorded, it gives others time to answer, if it is
// not sure that it has heard of all.
func (c *Client) win(sure bool, now int64, out *protocol.Out[Message]) {
	c.narrow(false, out)
	var room [16]int // of as many supporters without an allocation
	_, most := c.choose(true, room[:0])
	switch {
	case c.fence == FenceOff:
		c.enter(0, out)
	case c.fence == FencePiggyback:
		c.enter(1+most, out)
	case most+c.spare() < c.time: // each supporter recorded our timestamp with its support
		c.enter(c.time-c.spare(), out)
	case c.token != 0:
	case c.confirmed() < c.m: // a server that has only promised its support records no token for us yet
	case !sure && c.expects():
		c.askRest(out)
		if !c.resting {
			c.resting = true
			out.SetTimer(retryTimer, c.delay, 0)
		}
	default:
		chosen, most := c.choose(false, room[:0])
		c.token = 1 + most + c.spare()
		c.resting = false
		for _, j := range chosen {
			c.servers[j].asked = true
		}
		if wait := int64(c.token) - now; now > 0 && wait > 0 {
			// A clock that is far behind must not keep everybody waiting for it: the
			// servers compare the token with theirs. One within the bound is at most
			// 2 eps behind a server's, whose floor is 4 eps ahead of that.
			out.SetTimer(tokenTimer, min(wait, 6*c.eps), 0)
		} else {
			c.record(out)
		}
	}
}

// expects reports whether a server may support us that has not answered yet.
func (c *Client) expects() bool {
	return c.count(func(s *view) bool { return s.awaited() && !s.refused }) > 0
}

// choose appends to chosen the m supporters that know the smallest tokens, and returns the largest of these, too. Early ones
// may be among them, or not.
func (c *Client) choose(early bool, chosen []int) ([]int, uint64) {
	for j := range c.servers {
		if s := &c.servers[j]; s.supports() && (early || !s.early) {
			chosen = append(chosen, j)
		}
	}
	slices.SortStableFunc(chosen, func(i, j int) int {
		return cmp.Compare(c.servers[i].token, c.servers[j].token)
	})
	return chosen[:c.m], c.servers[chosen[c.m-1]].token
}

// record asks the chosen supporters to record the token.
func (c *Client) record(out *protocol.Out[Message]) {
	for j, s := range c.servers {
		if s.asked {
			out.Send(protocol.ID(j), Message{Kind: SetToken, Time: c.time, Serial: s.serial, Token: c.token})
		}
	}
}

func (c *Client) enterIfRecorded(out *protocol.Out[Message]) {
	if c.count(func(s *view) bool { return s.recorded }) >= c.m {
		c.last = max(c.last, c.token)
		c.enter(c.token-c.spare(), out)
	}
}

// onSetToken records a token for the support that it names.
func (s *Server) onSetToken(from protocol.ID, m Message, now int64, out *protocol.Out[Message]) {
	e := s.owned(from)
	current := e != nil && e.serial == m.Serial
	if !current || s.ahead(m.Token, now) || m.Token <= s.rest(from, now) {
		out.Send(from, Message{Kind: Refused, Time: m.Time, Token: uint64(now)})
		return
	}
	s.raise(s.fenced(from), m.Token, now, out)
	out.Send(from, Message{Kind: Recorded, Time: m.Time, Token: m.Token})
}

// fenced is for whom tokens of an owner count together: of those that share for their group, since tokens are ordered
// between groups and not within one.
func (s *Server) fenced(c protocol.ID) protocol.ID {
	if g := s.group(); g != 0 {
		return sideOf(g).client
	}
	return c
}

// report returns the largest token that a request of an owner must exceed. One that its own client had
// is among them: a client whose clock was set back may have forgotten it. Only the
// timestamp of the request itself is not.
func (s *Server) report(r request, now int64) uint64 {
	if x := s.tokens[0]; alone(s.group()) && x != 0 && x != r.time && !s.absurd(x, now) {
		return x
	}
	return s.rest(r.client, now)
}

// rest returns the largest token that clients may have had that do not share with an owner. In a session of a group that
// is what the server noted when the session began. The two recorded tokens would not tell it: beside one from a
// clock that was ahead, the second is of the group itself, perhaps.
func (s *Server) rest(owner protocol.ID, now int64) uint64 {
	side := s.fenced(owner)
	if side == owner {
		return s.others(owner, now)
	}
	rest := s.queue.shared.rest
	if s.largest != side && !s.absurd(s.tokens[0], now) { // it may have been absurd when the session began
		rest = max(rest, s.tokens[0])
	}
	return rest
}

// others returns the largest token that others than c may have had.
func (s *Server) others(c protocol.ID, now int64) uint64 {
	switch {
	case s.terms.Value().fence == FenceOff:
		return 0
	case s.terms.Value().fence == FencePiggyback:
		return s.tokens[0]
	case s.tokens[0] == 0:
		return s.floor(now)
	}
	tokens := s.tokens[:]
	if s.largest == c {
		tokens = s.tokens[1:]
	}
	for _, x := range tokens {
		if !s.absurd(x, now) {
			return x
		}
	}
	return s.floor(now)
}

// absurd reports whether nobody can have been let in with token x. A server whose clock
// is within the bound recorded it if somebody was, when it was at most 3 eps ahead of real
// time, and our clock is at most eps behind. So one that we have all the same is from a time
// at which our clock was wrong, or will be one when it is right again: it stays, and does not
// count meanwhile.
func (s *Server) absurd(x uint64, now int64) bool {
	return now > 0 && x > uint64(now+4*s.terms.Value().eps)
}

// floor is above every token that this server, in this life or an earlier one,
// may have recorded and forgotten. A token is at most 3 eps ahead of real time
// when it is recorded, and our clock is at most eps behind.
func (s *Server) floor(now int64) uint64 {
	t := s.terms.Value()
	if t.fence == FenceNoFloor {
		return 0
	}
	if now == 0 {
		return s.inc // without a clock there is no bound on tokens either
	}
	// A life that began later than now began by a clock that was wrong.
	return uint64(max(min(int64(s.inc), now), now-t.memory) + 4*t.eps)
}

// raise records token x for c.
func (s *Server) raise(c protocol.ID, x uint64, now int64, out *protocol.Out[Message]) {
	if s.tokens[0] == 0 {
		s.largest, s.tokens[0] = nobody, s.floor(now)
	}
	switch {
	case s.absurd(s.tokens[0], now) && !s.absurd(x, now): // it stays, and leaves the other place to x
		s.tokens[1] = max(s.others(nobody, now), x)
	case s.largest == c:
		s.tokens[0] = max(s.tokens[0], x)
	case x > s.tokens[0]:
		s.largest, s.tokens = c, [2]uint64{x, s.tokens[0]}
	default:
		s.tokens[1] = max(s.tokens[1], x)
	}
	out.SetTimer(forgetTimer, s.terms.Value().memory, 0)
}

// nobody is no client: it stands for the forgotten ones.
const nobody = ^protocol.ID(0)
