package node

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/internal/shrinkmap"
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
	peers   []*session // that have business with it: where shard.business has it
	owner   owner      // whom it supports
	replica *replica   // nil: it has no object
}

// A business is the instances that a peer has business with.
type business struct {
	shrinkmap.Map[*instance, struct{}]
	full time.Duration // after the node's start: until then they were too many
}

func (s *shard) stepAll(in protocol.Input) {
	for _, i := range s.instances.All() {
		s.step(i, in, nil, nil)
	}
}

func (s *shard) tryEvent(e *event) {
	u := s.users.get(e.text)
	u.section = protocol.InTry
	s.labelling = s.labelling || u.label != "" && !s.n.roles.member()
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

// create makes an instance: Start, and what it must know of the members and of this
// one.
func (s *shard) create(kind Kind, name string) *instance {
	i := &instance{kind: kind, name: name, process: s.n.c.Hosts[kind].New(s.n.c.ID, s.system(kind))}
	s.add(i)
	s.start(i)
	return i
}

// start gives an instance its first events.
func (s *shard) start(i *instance) {
	s.begin(i.kind, func(in protocol.Input) error {
		if !i.removed {
			s.stepKeep(i, in, nil, nil)
		}
		return nil
	})
}

// add makes i the instance of its name.
func (s *shard) add(i *instance) {
	s.instances.Set(i.name, i)
	s.n.instances.Add(1)
}

// begin feeds the first events of an instance.
func (s *shard) begin(kind Kind, feed func(protocol.Input) error) error {
	err := feed(protocol.NewStart(s.n.roles.life(s.n.incarnation)))
	for id, incarnation := range s.live {
		if incarnation != 0 && err == nil {
			err = feed(protocol.NewRestore(protocol.ID(id), incarnation))
		}
	}
	for id, suspected := range s.suspects {
		if suspected && err == nil {
			err = feed(protocol.NewSuspect(protocol.ID(id)))
		}
	}
	if s.draining && s.drains(kind) && err == nil {
		err = feed(protocol.Input{Kind: protocol.Drain})
	}
	return err
}

// step gives an event to an instance, and drops the instance when that leaves it
// idle.
func (s *shard) step(i *instance, in protocol.Input, msg []byte, from *session) {
	s.stepKeep(i, in, msg, from)
	s.pardon(i)
	s.dropIfIdle(i)
}

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
		s.noteWaiting(i, i.process.Waiting())
		s.tellSupports(i, in.Kind)
	case errors.Is(err, ErrMessage):
		s.n.book.complain(from.host, "malformed message", "lock", i.name, "request", i.owner.name(), "peer", s.n.roles.name(from.id), "error", err)
		s.n.end(from, err, fault(err).Append(nil))
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
		if s.restores(p) {
			s.n.end(p, errFailed, nil)
		}
	}
	if line := bytes.IndexByte([]byte(why), '\n'); line >= 0 {
		why = why[:line] // the stack is for the log
	}
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
	delete(s.refusals, i)
	s.n.instances.Add(-1)
	s.owned(i, 0, 0)
	s.noteWaiting(i, 0)
	i.removed = true
	for t := i.timers; t != nil; t = t.next {
		s.timers.remove(t)
	}
	i.timers = nil
	for _, p := range i.peers {
		s.labels.set(i, p.id, nil, 0)
		if locks := s.business[p]; locks != nil && locks.Has(i) {
			locks.Delete(i)
			s.n.origins.pair(p, -1)
		}
	}
	i.peers = nil
}

// dropIfIdle forgets an instance that nothing distinguishes from a new one.
func (s *shard) dropIfIdle(i *instance) {
	if i.timers != nil || i.removed || i.replica != nil || s.users.get(i.name) != nil {
		return
	}
	fresh := s.fresh[i.kind]
	if fresh == nil {
		if fresh = s.makeFresh(i.kind); fresh == nil {
			return
		}
	}
	var err error
	if s.state, err = i.process.AppendState(s.state[:0]); err != nil {
		s.fail(i, err.Error())
	} else if bytes.Equal(s.state, fresh) {
		s.remove(i)
	}
}

// makeFresh computes the state of an instance made now; nil if there is none.
func (s *shard) makeFresh(kind Kind) []byte {
	_, fresh := s.trial(kind)
	if fresh != nil {
		s.fresh[kind] = fresh
	}
	return fresh
}

// trial makes a process as create does, for no lock, and its state; nil if that fails.
func (s *shard) trial(kind Kind) (p Instance, fresh []byte) {
	p = s.n.c.Hosts[kind].New(s.n.c.ID, s.system(kind))
	err := s.begin(kind, func(in protocol.Input) error {
		in.Now = s.n.clock.now()
		return p.Step(in, nil, nowhere{})
	})
	fresh, stateErr := p.AppendState([]byte{})
	if err != nil || stateErr != nil {
		return nil, nil
	}
	return p, fresh
}

type nowhere struct{}

func (nowhere) Effect(protocol.Act, int, []byte) {}
func (nowhere) Received(int)                     {}
func (nowhere) Snapshot(string) error            { return nil }

// note records that a peer has business with an instance, where the end of its
// session concerns only those. It says why not, where there is too much of that already.
func (s *shard) note(i *instance, p *session) (why string) {
	if s.restores(p) || s.n.roles.watched() {
		return ""
	}
	locks := s.business[p]
	if locks != nil && locks.Has(i) {
		return ""
	}
	if !s.n.roles.isMember(p.id) {
		if why := s.tooMany(p, locks); why != "" {
			return why
		}
	}
	s.connect(i, p)
	return ""
}

func (s *shard) connect(i *instance, p *session) {
	if s.business[p] == nil {
		s.business[p] = &business{}
	}
	s.business[p].Set(i, struct{}{})
	s.n.origins.pair(p, 1)
	i.peers = append(i.peers, p)
}

// tooMany says why a client may have no business with one more instance. Those that
// do not know it any more do not count; enough of them are forgotten at once to pay
// for the search.
func (s *shard) tooMany(p *session, locks *business) string {
	most := s.n.c.MaxLocks/len(s.n.shards) + 1
	why := s.n.origins.crowded(p)
	if locks == nil {
		return why
	}
	if locks.Len() >= most {
		why = fmt.Sprintf("a client may hold or want %d locks at once, and this one does", s.n.c.MaxLocks)
	}
	now := time.Since(s.n.started)
	if why == "" || now < locks.full {
		return why
	}
	for i := range locks.All() {
		if st, err := i.process.Standing(); err == nil && !names(st.Holders, p.id) && !names(st.Waiters, p.id) {
			locks.Delete(i)
			i.forget(p)
			s.labels.set(i, p.id, nil, 0)
			s.n.origins.pair(p, -1)
		}
	}
	if locks.Len() < most-most/4 && s.n.origins.crowded(p) == "" {
		return ""
	}
	locks.full = now + time.Second // the next search is then
	return why
}

func names(all []protocol.Request, id protocol.ID) bool {
	return slices.ContainsFunc(all, func(r protocol.Request) bool { return r.User == id })
}

func (i *instance) forget(p *session) {
	if k := slices.Index(i.peers, p); k >= 0 {
		i.peers = slices.Delete(i.peers, k, k+1)
	}
}
