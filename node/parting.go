package node

import (
	"slices"
	"time"

	"github.com/poundlock/poundlock/transport"
)

// How long a node that closes says good-bye, in all, and how often it looks.
const (
	farewell     = time.Second
	farewellStep = time.Millisecond
)

// flush waits until the peers that are connected have received everything and
// the good-byes are sent, for a second in all. A member that is away just now, because
// it hands its table over or the connection broke, hears the good-bye if it can be
// reached at once: else it would count on this client until its lease lapses. So does one
// whose connection broke before the good-bye was out.
func (ss *sessions) flush() {
	deadline := time.Now().Add(farewell)
	in := func() bool { return time.Now().Before(deadline) }
	for ss.greeting.Load() > 0 && in() {
		time.Sleep(farewellStep)
	}
	rest, limit := ss.list(), deadline.Add(10*farewellStep)
	for k := 0; ; k++ {
		late := !in()
		rest = slices.DeleteFunc(rest, func(s *session) bool { return ss.leave(s, k, late) })
		if len(rest) == 0 || time.Now().After(limit) {
			return
		}
		time.Sleep(farewellStep)
	}
}

// leave takes a step towards the end of a session, the k-th one, and reports whether
// nothing is left to do. If it is late nobody is waited for but who hears the good-bye.
func (ss *sessions) leave(s *session, k int, late bool) (done bool) {
	c := s.connection()
	switch {
	case c == nil && ss.owes(s) && !late: // the dialer is about to try once more
		return false
	case c != nil && s.hasParted():
		return false
	case s.pending() && !late:
		if c != nil && k%4 == 0 {
			c.ask()
		}
		return false
	case !s.part(c):
		return false
	case c == nil || !ss.n.roles.leased(s.id):
		return true
	}
	c.finish(goodBye(), ErrClosed)
	return false
}

func goodBye() []byte { return transport.Item{Type: transport.ByeItem}.Append(nil) }

// bye ends the session because the peer closes. The accepting end answers with the same:
// a good-bye that went out on a connection that the peer has broken looks like one that
// was heard.
func (c *conn) bye() error {
	switch {
	case c.s.hasParted():
		c.mu.Lock()
		c.heard = true
		c.mu.Unlock()
		return errBye
	case c.dials:
		c.n.sessions.end(c.s, errBye, nil)
		return errBye
	}
	c.n.sessions.end(c.s, errBye, goodBye())
	return nil // the connection ends when the peer has been told
}

// part makes sure that nothing more is said in a session than what goes out on its
// connection now, which is c, nil for none. It reports whether that is so.
func (s *session) part(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		return false
	}
	s.parted = true
	return true
}

func (s *session) hasParted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parted
}

// owes reports whether a good-bye is still to be said in a session, on a connection
// that this end makes.
func (ss *sessions) owes(s *session) bool {
	if s == nil || !ss.n.roles.dialsTo(s.id) || !ss.n.roles.leased(s.id) {
		return false
	}
	_, up := s.up(ss.n.c.Boot())
	s.mu.Lock()
	defer s.mu.Unlock()
	return up && !s.parted
}
