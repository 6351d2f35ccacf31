package node

import (
	"errors"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// An instance is one process of one lock. There may be very many: it is kept small.
type instance struct {
	kind    Kind
	inside  bool  // its user is in the critical section
	removed bool  // the shard has forgotten it
	waiting int32 // requests in its queue
	name    string
	process Instance
	timers  *timer     // the first of those that are armed
	peers   []*session // that have business with it: as limits know
	owner   owner      // whom it supports
	replica *replica   // nil: it has no object
}

func (s *shard) stepAll(in protocol.Input) {
	for _, i := range s.instances.All() {
		s.step(i, in, nil, nil)
	}
}

func (s *shard) tryEvent(e *event) {
	u := s.users.get(e.text)
	u.section = protocol.InTry
	s.labels.used = s.labels.used || u.label != "" && !s.n.roles.member()
	why := s.users.failed[e.text]
	if i := s.instances.Get(e.text); i != nil && i.kind != u.kind {
		why = otherKind(i, u.kind)
	}
	if why != "" {
		s.users.leave(e.text)
		s.tell(e.text, func() { u.Rem(errors.New(why)) })
		return
	}
	in := protocol.Input{Kind: protocol.Try, Arg: protocol.TryWait}
	if e.once {
		in.Arg = protocol.TryOnce
	}
	s.stepUser(e.text, in)
}

// stepUser gives an event of the user to the instance of its lock.
func (s *shard) stepUser(name string, in protocol.Input) {
	i := s.instances.Get(name)
	if i != nil || in.Kind == protocol.Try {
		if i == nil {
			i = s.create(s.users.get(name).kind, name)
		}
		s.step(i, in, nil, nil)
		return
	}
	// The lock failed under a user that had to leave first.
	if u := s.users.get(name); u != nil {
		s.users.leave(name)
		s.tell(name, func() { u.Rem(because(s.users.failed[name])) })
	}
}

func (i *instance) forget(p *session) {
	if k := slices.Index(i.peers, p); k >= 0 {
		i.peers = slices.Delete(i.peers, k, k+1)
	}
}

// add makes i the instance of its name.
func (s *shard) add(i *instance) {
	s.instances.Set(i.name, i)
	s.n.instances.Add(1)
}
