package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// An instance is one process of one lock. There may be very many: it is kept small.
type instance struct {
	kind    Kind
	inside  bool  // its user is in the critical section
	removed bool  // the loop has forgotten it
	version uint8 // of the factory that made the process
	waiting int32 // requests in its queue
	name    string
	process Instance
	timers  *timer   // the first of those that are armed
	serves  *serving // nil: nobody, as at a client that holds leases
	replica *replica // nil: it has no object
}

// A serving instance is used by others.
type serving struct {
	peers []*session // that use it: as limits know
	owner owner      // whom it supports
}

// owner is whom an instance supports.
func (i *instance) owner() owner {
	if i.serves == nil {
		return owner{}
	}
	return i.serves.owner
}

// peers are those that use an instance.
func (i *instance) peers() []*session {
	if i.serves == nil {
		return nil
	}
	return i.serves.peers
}

// newInstance makes one. serves says that it will soon serve others: then one allocation has the memory for both.
func newInstance(kind Kind, name string, serves bool) *instance {
	if !serves {
		return &instance{kind: kind, name: name}
	}
	both := &struct {
		instance
		serving
	}{instance: instance{kind: kind, name: name}}
	both.serves = &both.serving
	return &both.instance
}

// serve has an instance serve others.
func (i *instance) serve() *serving {
	if i.serves == nil {
		i.serves = new(serving)
	}
	return i.serves
}

// # A step, and what stands beside it
//
// A message for a lock takes one way through a loop, which is here: hear, message, step, stepKeep, and the
// process. Five rules that no algorithm knows stand beside this way. Each is a type that owns what it remembers, and
// is asked where its turn comes:
//
//	                 before a step               after it                        when the instance goes
//	names            unserved, served            reset                          by
//	limits           note                     settle                             remove
//	labels           set                                                         with limits
//	audit                                        settle, waits; owned, joined    remove, waits
//	                                             and parted, as effects
//	factory: idling  first, for a new one        idle                            -
//
// Example: a request for a lock that this server does not own is refused by names.unserved, and no process is made.

// hear handles messages that were taken from the line, and forgets them.
func (l *loop) hear(batch []message) []message {
	for i := range batch {
		switch m := &batch[i]; {
		case m.sess.dead.Load():
			continue
		default:
			l.journal.noteMessage(m)
			l.deliver(m)
		}
	}
	clear(batch)
	return batch[:0]
}

// hearNow handles those messages of a parcel that are for this loop, at this place, in the goroutine that has read them, and has what they
// lead to sent from there: two changes of goroutines fewer. It does so only where the loop has nothing else to do, and reports whether
// it did. Steps that may take long, because of a journal or an object, are left to the loop's own goroutine.
func (l *loop) hearNow(p *parcel, place uint16) bool {
	if l.journal != nil || l.n.c.Objects != nil {
		return false
	}
	if !l.steps.tryTake() {
		return false
	}
	if l.n.roles.holds() {
		l.n.sessions.lapse()
	}
	if l.gate.shut || !l.inbox.idle() {
		l.steps.give()
		return false
	}
	for i := range p.messages {
		if m := &p.messages[i]; m.loop == place && !m.sess.dead.Load() {
			l.deliver(m)
		}
	}
	if t := l.timers.first(); t != nil && t.at < l.alarm {
		l.inbox.signal() // it is set too late
	}
	l.unlockAndFlush(&p.dirty)
	return true
}

// deliver handles a message.
func (l *loop) deliver(m *message) {
	switch {
	case m.refusal:
		l.names.refused(m)
	case m.wakes:
		l.wakened(m)
	default:
		l.message(m)
	}
}

// message delivers a message of a session that is not dead.
func (l *loop) message(e *message) {
	i := l.instances.View()[string(e.name)]
	if i == nil && len(l.users.failed) > 0 && l.users.failed[string(e.name)] != "" {
		return
	}
	if i == nil || i.kind != e.kind {
		if why := l.names.unserved(i, e); why != "" {
			l.names.refuse(e, why)
			return
		}
		i = l.create(e.kind, string(e.name), nil)
	}
	if why := l.limits.note(i, e.sess); why != "" {
		l.names.refuse(e, why)
		l.dropIfIdle(i)
		return
	}
	if len(l.names.by) > 0 { // at a client
		if l.names.served(i, e.sess.id); i.removed {
			return
		}
	}
	l.answers(i.name)
	label, body := e.parts()
	l.labels.set(i, e.sess.id, label)
	l.step(i, protocol.NewReceive(e.sess.id), body, e.sess)
	if l.n.detector != nil && l.make.suspects[e.sess.id] && !i.removed {
		l.step(i, protocol.NewSuspect(e.sess.id), nil, nil)
	}
}

// create makes an instance: Start, and what it must know of the members and of this
// one. object is nil but for a replica.
func (l *loop) create(kind Kind, name string, object *replica) *instance {
	i := newInstance(kind, name, l.n.roles.member())
	i.process, i.replica = l.make.born(kind), object
	i.version = l.make.version
	l.add(i)
	if i.process != nil {
		return i
	}
	i.process = l.make.make(kind)
	l.lull.begin(&l.n.roles)
	first := l.make.first(i.kind)
	for k, in := range first {
		if !i.removed {
			l.lull.hear(in, first[k+1:])
			l.stepKeep(i, in, nil, nil)
		}
	}
	l.lull.end()
	return i
}

// step gives an event to an instance, and drops the instance when that leaves it
// idle.
func (l *loop) step(i *instance, in protocol.Input, msg []byte, from *session) {
	l.stepKeep(i, in, msg, from)
	if len(l.names.by) > 0 {
		l.names.reset(i)
	}
	l.dropIfIdle(i)
}

// stepKeep gives an event to an instance, and keeps it. A process that breaks closes its lock, and a message that no
// process sends ends its session.
func (l *loop) stepKeep(i *instance, in protocol.Input, msg []byte, from *session) {
	in.Now = l.n.clock.now()
	l.current = i
	had, wasInside := !i.owner().nobody(), i.inside
	err := i.process.Step(in, msg, l)
	l.current = nil
	if i.replica != nil {
		i.replica.next = nil // it may not have been wanted
	}
	switch {
	case err == nil && i.replica != nil && i.replica.captures:
		l.captured(i)
	case err == nil:
		if len(l.audit.changes) > 0 {
			l.audit.settle(i)
		}
		l.audit.waits(i, i.process.Waiting())
		if had && i.owner().nobody() {
			l.limits.settle(i)
		}
		if wasInside && i.inside { // as it enters it is told anyway
			l.tellSupports(i, in.Kind)
		}
	case errors.Is(err, ErrMessage) && l.journal.refuses(from, err):
	case errors.Is(err, ErrMessage):
		l.n.book.warn(from.host, "malformed message", "lock", i.name, "request", i.owner().name(), "peer", l.n.roles.name(from.id), "error", err)
		l.n.sessions.end(from, err, fault(err).Append(nil))
	default:
		l.fail(i, err.Error())
	}
}

// fail closes a lock: its process has lost or broken its state, and a new one in
// its place could grant what the old one had given away. The name stays refused
// for the rest of this node's life.
func (l *loop) fail(i *instance, why string) {
	if i.removed || l.journal.failed(i, why) {
		return
	}
	// A member may support this client's process, which will never leave: new sessions
	// say that nothing of the old ones goes on.
	for _, p := range l.sessions {
		if l.n.roles.restores(p.id) {
			l.n.sessions.end(p, errFailed, nil)
		}
	}
	l.closeLock(i, why)
	if l.journal == nil {
		return
	}
	if why = fmt.Sprintf("object %q: %s", i.name, why); l.users.broken(why) {
		l.breakAll(why) // nothing is written any more: so the users of others are told nothing, either
	}
}

// closeLock closes one lock, and nothing else.
func (l *loop) closeLock(i *instance, why string) {
	l.n.c.Log.Error("lock failed and stays closed", "lock", i.name, "request", i.owner().name(), "reason", why)
	l.remove(i)
	why, _, _ = strings.Cut(why, "\n") // the stack is for the log
	u := l.users.fail(i.name, why)
	if i.replica != nil || i.kind == Election {
		go l.n.Close() // others would wait for a process that is heard of and does nothing
	}
	if u == nil {
		return
	}
	switch section := u.section; {
	case section == protocol.InTry, i.replica != nil && (section != protocol.InLost || l.journal != nil): // it may not know that it is lost
		l.users.leave(i.name)
		l.tell(i.name, func() { u.Rem(errors.New(why)) })
	case section == protocol.InCrit:
		u.section = protocol.InLost // Exit and Rem follow
		l.tell(i.name, u.Ejected)
	}
}

// remove forgets an instance.
func (l *loop) remove(i *instance) {
	l.instances.Delete(i.name)
	delete(l.names.by, i)
	l.n.instances.Add(-1)
	l.audit.remove(i)
	l.audit.waits(i, 0)
	i.removed = true
	l.gone(i.name)
	for t := i.timers; t != nil; t = t.next {
		l.timers.remove(t)
	}
	i.timers = nil
	l.limits.remove(i)
}

// dropIfIdle forgets an instance that nothing distinguishes from a new one.
func (l *loop) dropIfIdle(i *instance) {
	if i.timers != nil || i.removed || i.replica != nil || i.kind == Election || l.users.get(i.name) != nil {
		return
	}
	switch idle, err := l.make.idle(i.kind, i.process); {
	case err != nil:
		l.fail(i, err.Error())
	case idle:
		l.remove(i)
		l.make.keep(i)
	}
}

func (l *loop) stepAll(in protocol.Input) {
	if l.journal != nil { // in an order that is the same when it is done again
		for _, name := range slices.Sorted(maps.Keys(l.instances.View())) {
			if i := l.instances.Get(name); i != nil {
				l.step(i, in, nil, nil)
			}
		}
		return
	}
	for _, i := range l.instances.All() {
		l.step(i, in, nil, nil)
	}
}

func (l *loop) tryEvent(e *event) {
	u := l.users.get(e.name)
	if u == nil { // the process of its object has failed meanwhile, and it was told
		return
	}
	l.journal.noteUser(e.name, protocol.Try, nil)
	u.section = protocol.InTry
	l.labels.used = l.labels.used || u.labelled && !l.n.roles.member()
	why := ""
	if f, ok := errors.AsType[*FailedError](l.users.failing(e.name)); ok {
		why = f.Why
	}
	if i := l.instances.Get(e.name); i != nil && i.kind != u.kind {
		why = otherKind(i, u.kind)
	}
	if why != "" {
		l.users.leave(e.name)
		l.tell(e.name, func() { u.Rem(errors.New(why)) })
		return
	}
	in := protocol.NewTry(u.wants())
	if e.once {
		in.Arg = protocol.TryOnce
	}
	in.Arg = protocol.WithLater(protocol.WithHeadStart(in.Arg, uint64(u.ahead())), l.later(u.kind, e.name))
	l.stepUser(e.name, in)
	if l.n.roles.mutual() {
		for id := range l.make.links {
			l.wake(e.name, protocol.ID(id))
		}
	}
}

// stepUser gives an event of the user to the instance of its lock.
func (l *loop) stepUser(name string, in protocol.Input) {
	i := l.instances.Get(name)
	if i != nil || in.Kind == protocol.Try {
		if i == nil {
			i = l.create(l.users.get(name).kind, name, nil)
		}
		l.step(i, in, nil, nil)
		return
	}
	// The lock failed under a user that had to leave first.
	if u := l.users.get(name); u != nil {
		l.users.leave(name)
		l.tell(name, func() { u.Rem(because(l.users.failed[name])) })
	}
}

func (i *instance) forget(p *session) {
	if k := slices.Index(i.peers(), p); k >= 0 {
		i.serves.peers = slices.Delete(i.serves.peers, k, k+1)
	}
}

// add makes i the instance of its name.
func (l *loop) add(i *instance) {
	l.instances.Set(i.name, i)
	l.n.instances.Add(1)
}
