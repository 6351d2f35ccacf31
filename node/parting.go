package node

import (
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
// reached at once: else it would count on this client until its lease lapses.
func (n *Node) flush() {
	deadline := time.Now().Add(farewell)
	in := func() bool { return time.Now().Before(deadline) }
	for n.greeting.Load() > 0 && in() {
		time.Sleep(farewellStep)
	}
	var left []*conn
	part := func(s *session) {
		for k := 0; s.pending() && in(); k++ {
			if c := s.connection(); c != nil && k%4 == 0 {
				c.ask()
			}
			time.Sleep(farewellStep)
		}
		if c := s.part(); c != nil && n.leased(s.id) {
			c.finish(transport.Item{Type: transport.ByeItem}.Append(nil), ErrClosed)
			left = append(left, c)
		}
	}
	var away []*session
	for _, s := range n.list() {
		if n.away(s) {
			away = append(away, s)
			continue
		}
		part(s)
	}
	for _, s := range away {
		for n.away(s) && in() {
			time.Sleep(farewellStep)
		}
		part(s)
	}
	limit := time.NewTimer(time.Until(deadline) + 10*farewellStep)
	defer limit.Stop()
	for _, c := range left {
		select {
		case <-c.done:
		case <-limit.C:
			return
		}
	}
}

// owes reports whether a good-bye is still to be said in a session, on a connection
// that this end makes.
func (n *Node) owes(s *session) bool {
	if s == nil || !n.dialsTo(s.id) || !n.leased(s.id) {
		return false
	}
	_, up := s.up(n.c.Boot())
	s.mu.Lock()
	defer s.mu.Unlock()
	return up && !s.parted
}

// away reports whether the dialer is about to try once more to say good-bye.
func (n *Node) away(s *session) bool { return n.owes(s) && s.connection() == nil }

// part makes sure that nothing more is said in a session than what goes out on its
// connection now, which it returns: nil for none.
func (s *session) part() *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parted = true
	return s.conn
}
