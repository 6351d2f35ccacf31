package node

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// tell calls a user back. One that panics does not take the node with it; false
// says that it may not know where it is.
func (s *shard) tell(name string, callback func()) (ok bool) { return s.call("user", name, callback) }

// because is the error that has a text, nil where it has none.
func because(why string) error {
	if why == "" {
		return nil
	}
	return errors.New(why)
}

// call calls code of a user or of an object, which may panic.
func (s *shard) call(whose, name string, callback func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			s.n.c.Log.Error("the "+whose+" of a lock panicked", "lock", name, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	callback()
	return true
}

// Received implements Sink.
func (s *shard) Received(kind int) { s.audit.tally.received[s.n.firstMessage[s.current.kind]+kind]++ }

// Effect implements Sink for the current instance.
func (s *shard) Effect(a protocol.Act, kind int, msg []byte) {
	i := s.current
	if i.removed {
		return // an earlier effect of this step made the lock fail
	}
	switch a.Do {
	case protocol.Send:
		s.send(i, a.To, kind, msg)
	case protocol.Broadcast:
		for id := range s.n.c.System.N {
			if id := protocol.ID(id); id != s.n.c.ID {
				s.send(i, id, kind, msg)
			}
		}
	case protocol.Crit:
		if u := s.users.get(i.name); u != nil {
			u.section, i.inside = protocol.InCrit, true
			e := Entry{Token: a.Arg}
			e.Sessions, e.Request = s.supports(i)
			u.supports = e.Sessions
			s.tellOrFail(i, func() { u.Crit(e) })
		}
	case protocol.Ejected:
		i.inside = false
		if u := s.users.get(i.name); u != nil {
			u.section = protocol.InLost
			s.tellOrFail(i, u.Ejected)
		}
	case protocol.Rem:
		i.inside = false
		if u := s.users.get(i.name); u != nil {
			s.users.leave(i.name)
			s.names.left(i)
			s.tell(i.name, func() { u.Rem(cmp.Or(because(u.refusal), a.Reason().Err())) }) // it has left, whatever it does
		}
	case protocol.SetTimer:
		after := time.Duration(a.After)
		if a.Arg > 0 {
			after += time.Duration(s.random.Uint64N(a.Arg + 1))
		}
		s.timers.set(i, a.Timer, time.Since(s.n.started)+after)
	case protocol.StopTimer:
		if t := i.timer(a.Timer); t != nil {
			s.timers.stop(t)
		}
	case protocol.Owner:
		s.audit.owned(i, a.To, a.Arg, s.sessions[a.To])
	case protocol.Invoke:
		s.invoke(i, a.Data)
	case protocol.Outcome:
		s.outcome(i)
	case protocol.Capture:
		i.replica.captures = true
	case protocol.Install:
		s.guard(i, i.replica.install)
	default:
		panic(fmt.Sprintf("node: unknown effect %d", a.Do))
	}
}

// supports are the members that critical sections count on, and the numbers of the sessions with them. Most locks
// count on one of a few sets: equal ones are one map, which nobody may change.
type supports struct {
	known map[string]map[protocol.ID]uint64
	state []byte // scratch
}

// of are the members that a process counts on, with the sessions that there are.
func (c *supports) of(standing protocol.Standing, sessions map[protocol.ID]*session) (numbers map[protocol.ID]uint64) {
	const most = 16
	c.state = c.state[:0]
	for _, id := range standing.Supports {
		if sess := sessions[id]; sess != nil {
			sess.mu.Lock()
			c.state = binary.AppendUvarint(binary.AppendUvarint(c.state, uint64(id)), sess.number)
			sess.mu.Unlock()
		}
	}
	if numbers = c.known[string(c.state)]; numbers == nil {
		if len(c.known) >= most {
			clear(c.known)
		}
		numbers = make(map[protocol.ID]uint64, len(standing.Supports))
		for r := (protocol.Reader{Rest: c.state}); len(r.Rest) > 0; {
			id := protocol.ID(r.Uint())
			numbers[id] = r.Uint()
		}
		c.known[string(c.state)] = numbers
	}
	return numbers
}

// supports are what the critical section of an instance counts on, and the time of the request that got it. One
// whose state cannot be read counts on nothing.
func (s *shard) supports(i *instance) (numbers map[protocol.ID]uint64, request uint64) {
	standing, err := i.process.Standing()
	if err != nil {
		s.n.c.Log.Error("no standing", "lock", i.name, "error", err)
	}
	return s.counts.of(standing, s.sessions), uint64(standing.Since)
}

// tellSupports tells a user that is inside what it counts on now, if an event
// about a member has changed that.
func (s *shard) tellSupports(i *instance, about protocol.Kind) {
	switch about {
	case protocol.Receive, protocol.Suspect, protocol.Restore:
	default:
		return
	}
	if i.removed {
		return
	}
	u := s.users.get(i.name)
	now, _ := s.supports(i)
	if u != nil && !maps.Equal(u.supports, now) {
		u.supports = now
		s.tellOrFail(i, func() { u.Supported(now) })
	}
}

// tellOrFail closes the lock of a user that panics while it has something to do
// with it: nobody else would Exit.
func (s *shard) tellOrFail(i *instance, callback func()) {
	if !s.tell(i.name, callback) {
		s.fail(i, "its user panicked")
	}
}

// send appends a message to the session with a peer. Without one it is lost: the
// process has been told, or nobody will ever need it.
func (s *shard) send(i *instance, to protocol.ID, kind int, msg []byte) {
	p := s.sessions[to]
	if p == nil {
		return
	}
	most := transport.MaxMessage
	if i.replica != nil {
		most = s.n.maxMessage()
	}
	if len(msg) > most {
		s.fail(i, fmt.Sprintf("a message of %d bytes exceeds %d", len(msg), most))
		return
	}
	s.limits.note(i, p)
	s.audit.tally.sent[s.n.firstMessage[i.kind]+kind]++
	if u := s.labelled(i); u != nil {
		s.out.state = transport.AppendLabelled(s.out.state[:0], u.label, msg)
		s.out.push(p, transport.LabelledItem, i.kind, i.name, s.out.state, false)
		return
	}
	s.out.push(p, transport.MessageItem, i.kind, i.name, msg, i.replica != nil && i.replica.states)
}

func (i *instance) timer(id uint32) *timer {
	t := i.timers
	for t != nil && t.id != id {
		t = t.next
	}
	return t
}

// runTimers fires what is due, and returns how long to wait for the next one.
func (s *shard) runTimers() time.Duration {
	const most = time.Hour
	if len(s.timers) == 0 {
		return most
	}
	now := time.Since(s.n.started)
	for len(s.timers) > 0 && s.timers[0].at <= now {
		t := s.timers[0]
		s.timers.stop(t)
		s.step(t.inst, protocol.Input{Kind: protocol.Timeout, Timer: t.id}, nil, nil)
	}
	if len(s.timers) == 0 {
		return most
	}
	return min(most, s.timers[0].at-now)
}

// An outbox is where a shard puts what it sends. The writers of sessions are woken once for many messages.
type outbox struct {
	n     *Node
	dirty []*session // to be kicked
	state []byte     // scratch
}

// push appends an item to the window of a session, which is dropped when it is full.
func (o *outbox) push(p *session, t transport.Type, kind Kind, name string, body []byte, state bool) {
	if err := p.send(t, kind, name, body, state); err != nil {
		o.n.sessions.drop(p, err, nil)
		return
	}
	if p.kicked.CompareAndSwap(false, true) {
		o.dirty = append(o.dirty, p)
	}
}

// flush wakes the writers of all sessions in which something was sent.
func (o *outbox) flush() {
	for _, p := range o.dirty {
		p.kick()
	}
	clear(o.dirty)
	o.dirty = o.dirty[:0]
}
