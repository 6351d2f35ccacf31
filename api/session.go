package api

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	pb "github.com/poundlock/poundlock/api/poundlockv1"
	"github.com/poundlock/poundlock/transport"
)

// A session is one client of the API. Guarded by Service.mu, but for what is
// constant: id, label, lease.
type session struct {
	id    string // secret
	label string
	lease time.Duration

	open    int       // calls and streams in progress: while there are any, the session lives
	expires time.Time // one lease after the end of the last one
	timer   *time.Timer
	ended   chan struct{} // closed when the session ends, after why is set
	why     string

	grants   map[string]*grant // waiting, held and lost
	waits    int               // Lock calls in progress
	released []*grant          // the last ones, the oldest first
	watchers map[*watcher]struct{}
}

// newSession adds a session to s, whose mu is held.
func newSession(s *Service, label string, lease time.Duration) *session {
	x := &session{
		id: randomID(), label: label, lease: lease,
		expires:  time.Now().Add(lease),
		ended:    make(chan struct{}),
		grants:   map[string]*grant{},
		watchers: map[*watcher]struct{}{},
	}
	x.timer = time.AfterFunc(lease, func() { s.expire(x) })
	s.sessions[x.id] = x
	return x
}

// randomID has 128 random bits.
func randomID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// shown is what a log may say of the session's id.
func (x *session) shown() string { return x.id[:8] }

// user is what the session's holds are called in the whole cluster.
func (x *session) user() string {
	if x.label == "" {
		return "session " + x.shown()
	}
	return x.label
}

// begin finds a session for a call or a stream of it, which keeps it alive.
func (s *Service) begin(id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[id]
	if x == nil {
		return nil, unknownSession()
	}
	x.open++
	return x, nil
}

// end is the end of that call or stream: the lease begins.
func (s *Service) end(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.open--
	if x.why == "" {
		x.expires = time.Now().Add(x.lease)
		x.timer.Reset(x.lease)
	}
}

// expire ends a session whose lease has run out, unless a call or a stream is in
// progress, or one has ended since the timer fired.
func (s *Service) expire(x *session) {
	s.close(x, "its lease ran out", func() bool { return x.open == 0 && !time.Now().Before(x.expires) })
}

// always is the condition to close a session whatever it does.
func always() bool { return true }

// close ends a session if the condition holds, and releases all that it has. It
// does nothing to one that has ended.
func (s *Service) close(x *session, why string, condition func() bool) {
	s.mu.Lock()
	if x.why != "" || !condition() {
		s.mu.Unlock()
		return
	}
	x.why = why
	x.timer.Stop()
	delete(s.sessions, x.id)
	sections := map[*grant]section{}
	for _, g := range x.grants {
		sections[g] = s.leave(g)
	}
	close(x.ended)
	s.mu.Unlock()
	s.log.Debug("session ended", "session", x.shown(), "label", x.label, "reason", why)
	for g, c := range sections {
		s.unlock(g, c)
	}
}

// grantsOf returns one grant, or all that are not released, by id.
func (s *Service) grantsOf(x *session, id string) ([]*grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" {
		return x.sorted(), nil
	}
	g := x.find(id)
	if g == nil {
		return nil, unknownGrant(id)
	}
	return []*grant{g}, nil
}

// heldAndLost sorts out the grants of a session.
func (s *Service) heldAndLost(x *session) (held []*grant, lost []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range x.grants {
		switch g.state {
		case pb.State_STATE_HELD:
			held = append(held, g)
		case pb.State_STATE_LOST:
			lost = append(lost, g.id)
		}
	}
	slices.Sort(lost)
	return held, lost
}

// sorted are the grants that are not released, by id. Service.mu is held.
func (x *session) sorted() []*grant {
	return slices.SortedFunc(maps.Values(x.grants), func(a, b *grant) int { return cmp.Compare(a.id, b.id) })
}

// find returns a grant that the session has, or remembers; nil if there is none.
func (x *session) find(id string) *grant {
	if g := x.grants[id]; g != nil {
		return g
	}
	if k := slices.IndexFunc(x.released, func(g *grant) bool { return g.id == id }); k >= 0 {
		return x.released[k]
	}
	return nil
}

// checkText checks what a client calls something.
func checkText(field, text string, limit int) error {
	if err := transport.CheckText(field, text, limit); err != nil {
		return failf(pb.Reason_REASON_INVALID, "%w", err)
	}
	return nil
}
