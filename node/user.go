package node

import (
	"fmt"
	"sync"

	"github.com/poundlock/poundlock/internal/shrinkmap"
	"github.com/poundlock/poundlock/protocol"
)

// A user is the user of one lock, from Try to Rem.
type user struct {
	User
	kind     Kind
	label    string                 // "" for none
	refusal  string                 // of a member that does not serve the lock: the reason of Rem
	section  protocol.Section       // the shard's
	supports map[protocol.ID]uint64 // what it was told last; shared
}

// users are the users of the locks of a shard, and the locks that no user can have any more.
type users struct {
	mu     sync.Mutex // taken before that of the inbox
	byName shrinkmap.Map[string, *user]
	failed map[string]string // why a lock is dead at this node; written by the shard
	closed bool
}

// get is the user of a lock, nil if it has none.
func (s *users) get(name string) *user {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName.Get(name)
}

// enter makes u the user of a lock, and queues its Try.
func (s *users) enter(name string, u *user, once bool, in *inbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why, ok := s.failed[name]; ok { // also after the node has closed, perhaps for that
		return fmt.Errorf("%w: %q: %s", ErrFailed, name, why)
	}
	if s.closed {
		return ErrClosed
	}
	if s.byName.Has(name) {
		return fmt.Errorf("%w: %q", ErrBusy, name)
	}
	s.byName.Set(name, u)
	in.post(event{op: opTry, text: name, once: once})
	return nil
}

// leave forgets the user of a lock, before it is told Rem: it may Try again at
// once.
func (s *users) leave(name string) {
	s.mu.Lock()
	s.byName.Delete(name)
	s.mu.Unlock()
}

// fail notes that a lock is dead, and why. It returns its user, nil if it has none.
func (s *users) fail(name, why string) *user {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[name] = why
	return s.byName.Get(name)
}

// close lets nobody enter any more, and returns the users that there are.
func (s *users) close() shrinkmap.Map[string, *user] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.byName
	s.byName, s.closed = shrinkmap.Map[string, *user]{}, true
	return all
}
