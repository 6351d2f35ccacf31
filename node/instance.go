package node

import (
	"errors"
	"slices"
	"strings"

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

// # A step, and what stands beside it
//
// A message for a lock takes one way through a shard, which is here: hear, message, step, stepKeep, and the
// process. Five rules that no algorithm knows stand beside this way. Each is a type that owns what it remembers, and
// is asked where its turn comes:
//
//	                 before a step               after it                        when the instance goes
//	names            unserved, served            pardon                          by
//	limits           note                                                        remove
//	labels           set                                                         with limits
//	audit                                        waits; owned, as an effect      owned, waits
//	factory: idling  first, for a new one        idle                            -
//
// Example: a request for a lock that this server does not own is refused by names.unserved, and no process is made.

// hear handles messages that were taken from the line, and forgets them.
func (s *shard) hear(batch []message) []message {
	for i := range batch {
		if m := &batch[i]; m.refusal {
			s.names.refused(m)
		} else {
			s.message(m)
		}
	}
	clear(batch)
	return batch[:0]
}

// message delivers a message of a session that is not dead.
func (s *shard) message(e *message) {
	if e.sess.dead.Load() {
		return
	}
	i := s.instances.View()[string(e.name)]
	if i == nil && len(s.users.failed) > 0 && s.users.failed[string(e.name)] != "" {
		return
	}
	if i == nil || i.kind != e.kind {
		if why := s.names.unserved(i, e); why != "" {
			s.names.refuse(e, why)
			return
		}
		i = s.create(e.kind, string(e.name), nil)
	}
	if why := s.limits.note(i, e.sess); why != "" {
		s.names.refuse(e, why)
		s.dropIfIdle(i)
		return
	}
	if len(s.names.by) > 0 { // at a client
		if s.names.served(i, e.sess.id); i.removed {
			return
		}
	}
	label, body := e.parts()
	s.labels.set(i, e.sess.id, label)
	s.step(i, protocol.NewReceive(e.sess.id), body, e.sess)
	if s.n.detector != nil && s.make.suspects[e.sess.id] && !i.removed {
		s.step(i, protocol.NewSuspect(e.sess.id), nil, nil)
	}
}

// create makes an instance: Start, and what it must know of the members and of this
// one. object is nil but for a replica.
func (s *shard) create(kind Kind, name string, object *replica) *instance {
	i := &instance{kind: kind, name: name, process: s.make.make(kind), replica: object}
	s.add(i)
	for _, in := range s.make.first(i.kind) {
		if !i.removed {
			s.stepKeep(i, in, nil, nil)
		}
	}
	return i
}

// step gives an event to an instance, and drops the instance when that leaves it
// idle.
func (s *shard) step(i *instance, in protocol.Input, msg []byte, from *session) {
	s.stepKeep(i, in, msg, from)
	if len(s.names.by) > 0 {
		s.names.pardon(i)
	}
	s.dropIfIdle(i)
}

// stepKeep gives an event to an instance, and keeps it. A process that breaks closes its lock, and a message that no
// process sends ends its session.
func (s *shard) stepKeep(i *instance, in protocol.Input, msg []byte, from *session) {
	in.Now = s.n.clock.now()
	s.current = i
	err := i.process.Step(in, msg, s)
	s.current = nil
	if i.replica != nil {
		i.replica.next = nil // it may not have been wanted
	}
	switch {
	case err == nil && i.replica != nil && i.replica.captures:
		s.captured(i)
	case err == nil:
		s.audit.waits(i, i.process.Waiting())
		if i.inside {
			s.tellSupports(i, in.Kind)
		}
	case errors.Is(err, ErrMessage):
		s.n.book.complain(from.host, "malformed message", "lock", i.name, "request", i.owner.name(), "peer", s.n.roles.name(from.id), "error", err)
		s.n.sessions.end(from, err, fault(err).Append(nil))
	default:
		s.fail(i, err.Error())
	}
}

// fail closes a lock: its process has lost or broken its state, and a new one in
// its place could grant what the old one had given away. The name stays refused
// for the rest of this node's life.
func (s *shard) fail(i *instance, why string) {
	if i.removed {
		return
	}
	s.n.c.Log.Error("lock failed and stays closed", "lock", i.name, "request", i.owner.name(), "reason", why)
	s.remove(i)
	// A member may support this client's process, which will never leave: new sessions
	// say that nothing of the old ones goes on.
	for _, p := range s.sessions {
		if s.n.roles.restores(p.id) {
			s.n.sessions.end(p, errFailed, nil)
		}
	}
	why, _, _ = strings.Cut(why, "\n") // the stack is for the log
	u := s.users.fail(i.name, why)
	if i.replica != nil {
		go s.n.Close() // others would wait for a process that is heard of and does nothing
	}
	if u == nil {
		return
	}
	switch section := u.section; {
	case section == protocol.InTry, i.replica != nil && section != protocol.InLost:
		s.users.leave(i.name)
		s.tell(i.name, func() { u.Rem(errors.New(why)) })
	case section == protocol.InCrit:
		u.section = protocol.InLost // Exit and Rem follow
		s.tell(i.name, u.Ejected)
	}
}

// remove forgets an instance.
func (s *shard) remove(i *instance) {
	s.instances.Delete(i.name)
	delete(s.names.by, i)
	s.n.instances.Add(-1)
	s.audit.owned(i, 0, 0, nil)
	s.audit.waits(i, 0)
	i.removed = true
	for t := i.timers; t != nil; t = t.next {
		s.timers.remove(t)
	}
	i.timers = nil
	s.limits.remove(i)
}

// dropIfIdle forgets an instance that nothing distinguishes from a new one.
func (s *shard) dropIfIdle(i *instance) {
	if i.timers != nil || i.removed || i.replica != nil || s.users.get(i.name) != nil {
		return
	}
	switch idle, err := s.make.idle(i.kind, i.process); {
	case err != nil:
		s.fail(i, err.Error())
	case idle:
		s.remove(i)
	}
}

func (s *shard) stepAll(in protocol.Input) {
	for _, i := range s.instances.All() {
		s.step(i, in, nil, nil)
	}
}

func (s *shard) tryEvent(e *event) {
	u := s.users.get(e.name)
	u.section = protocol.InTry
	s.labels.used = s.labels.used || u.label != "" && !s.n.roles.member()
	why := s.users.failed[e.name]
	if i := s.instances.Get(e.name); i != nil && i.kind != u.kind {
		why = otherKind(i, u.kind)
	}
	if why != "" {
		s.users.leave(e.name)
		s.tell(e.name, func() { u.Rem(errors.New(why)) })
		return
	}
	in := protocol.Input{Kind: protocol.Try, Arg: protocol.TryWait}
	if e.once {
		in.Arg = protocol.TryOnce
	}
	s.stepUser(e.name, in)
}

// stepUser gives an event of the user to the instance of its lock.
func (s *shard) stepUser(name string, in protocol.Input) {
	i := s.instances.Get(name)
	if i != nil || in.Kind == protocol.Try {
		if i == nil {
			i = s.create(s.users.get(name).kind, name, nil)
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
