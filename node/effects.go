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
func (l *loop) tell(name string, callback func()) (ok bool) {
	return l.journal.defers(name, callback) || l.call("user", name, callback)
}

// because is the error that has a text, nil where it has none.
func because(why string) error {
	if why == "" {
		return nil
	}
	return errors.New(why)
}

// call calls code of a user or of an object, which may panic.
func (l *loop) call(whose, name string, callback func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			l.n.c.Log.Error("the "+whose+" of a lock panicked", "lock", name, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	callback()
	return true
}

// Received implements Sink.
func (l *loop) Received(kind int) { l.audit.tally.received[l.n.firstMessage[l.current.kind]+kind]++ }

// Effect implements Sink for the current instance.
func (l *loop) Effect(a protocol.Act, kind int, msg []byte) {
	i := l.current
	if i.removed {
		return // an earlier effect of this step made the lock fail
	}
	switch a.Do {
	case protocol.Send:
		l.send(i, a.To, kind, msg, a.After >= int64(2*ackDelay) && l.journal == nil)
	case protocol.Broadcast:
		for id := range l.n.c.System.N {
			if id := protocol.ID(id); id != l.n.c.ID {
				l.send(i, id, kind, msg, false)
			}
		}
	case protocol.Crit:
		if u := l.users.get(i.name); u != nil {
			u.section, i.inside = protocol.InCrit, true
			l.enters(i.name)
			e := Entry{Token: a.Arg, Group: protocol.Group(a.Data)}
			e.Sessions, e.Request = l.supports(i)
			u.supports = e.Sessions
			l.tellOrFail(i, func() { u.Crit(e) })
		}
	case protocol.Ejected:
		i.inside = false
		if u := l.users.get(i.name); u != nil {
			u.section = protocol.InLost
			l.tellOrFail(i, u.Ejected)
		}
	case protocol.Rem:
		i.inside = false
		l.gone(i.name)
		if u := l.users.get(i.name); u != nil {
			l.users.leave(i.name)
			why := cmp.Or(because(l.names.left(i)), a.Reason().Err())
			l.journal.left(u)
			l.tell(i.name, func() { u.Rem(why) }) // it has left, whatever it does
		}
	case protocol.SetTimer:
		after, same := time.Duration(a.After), time.Duration(a.After)
		if a.Arg > 0 {
			after, same = after+time.Duration(l.random.Uint64N(a.Arg+1)), 0
		}
		l.timers.set(i, a.Timer, together(l.now()+after, after), same)
	case protocol.StopTimer:
		if t := i.timer(a.Timer); t != nil {
			l.timers.stop(t)
		}
	case protocol.Wanted:
		if u := l.users.get(i.name); u != nil {
			if s, ok := u.User.(Sharer); ok {
				l.tellOrFail(i, s.Wanted)
			}
		}
	case protocol.Leader:
		if told := l.n.c.Leader; told != nil {
			l.call("observer", i.name, func() { told(a.To, a.Arg) })
		}
	case protocol.Owner:
		l.audit.owned(i, a.To, a.Arg, l.sessions[a.To])
	case protocol.Joined:
		l.audit.joined(a.To, a.Arg, a.Data, l.sessions[a.To])
	case protocol.Parted:
		l.audit.parted(a.To, a.Arg)
	case protocol.Invoke:
		l.invoke(i, a.Data)
	case protocol.Outcome:
		l.outcome(i)
	case protocol.Capture:
		i.replica.captures = true
	case protocol.Revoke:
		if p := l.sessions[a.To]; p != nil {
			l.n.sessions.end(p, errRevoked, nil)
		}
	case protocol.Install:
		l.guard(i, i.replica.install)
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
func (l *loop) supports(i *instance) (numbers map[protocol.ID]uint64, request uint64) {
	standing, err := i.process.Standing()
	if err != nil {
		l.n.c.Log.Error("no standing", "lock", i.name, "error", err)
	}
	return l.counts.of(standing, l.sessions), uint64(standing.Since)
}

// tellSupports tells a user that is inside what it counts on now, if an event
// about a member has changed that.
func (l *loop) tellSupports(i *instance, about protocol.Kind) {
	switch about {
	case protocol.Receive, protocol.Suspect, protocol.Restore:
	default:
		return
	}
	if i.removed {
		return
	}
	u := l.users.get(i.name)
	now, _ := l.supports(i)
	if u != nil && !maps.Equal(u.supports, now) {
		u.supports = now
		l.tellOrFail(i, func() { u.Supported(now) })
	}
}

// tellOrFail closes the lock of a user that panics while it has something to do
// with it: nobody else would Exit.
func (l *loop) tellOrFail(i *instance, callback func()) {
	if !l.tell(i.name, callback) {
		l.fail(i, "its user panicked")
	}
}

// send appends a message to the session with a peer. Without one it is lost: the
// process has been told, or nobody will ever need it. One that can wait goes with the next frame, as an acknowledgement does.
func (l *loop) send(i *instance, to protocol.ID, kind int, msg []byte, canWait bool) {
	p := l.sessions[to]
	if p == nil || l.lull.mutes(to) {
		return
	}
	most := transport.MaxMessage
	if i.replica != nil {
		most = l.n.maxMessage()
	}
	if len(msg) > most {
		l.fail(i, fmt.Sprintf("a message of %d bytes exceeds %d", len(msg), most))
		return
	}
	l.limits.note(i, p)
	l.audit.tally.sent[l.n.firstMessage[i.kind]+kind]++
	if u := l.labelled(i); u != nil {
		l.out.state = transport.AppendLabelled(l.out.state[:0], labelOf(u.User), msg)
		l.out.send(p, transport.LabelledItem, i.kind, i.name, l.out.state, false)
		return
	}
	if canWait && p.sendLater(i.kind, i.name, msg) {
		return
	}
	l.out.send(p, transport.MessageItem, i.kind, i.name, msg, i.replica != nil && i.replica.states)
}

func (i *instance) timer(id uint32) *timer {
	t := i.timers
	for t != nil && t.id != id {
		t = t.next
	}
	return t
}

// now is the time of timers.
func (l *loop) now() time.Duration { return time.Since(l.n.started) }

// runTimers fires what is due at now.
func (l *loop) runTimers(now time.Duration) {
	for t := l.timers.first(); t != nil && t.at <= now; t = l.timers.first() {
		i, id := t.inst, t.id
		l.timers.stop(t)
		l.step(i, protocol.Input{Kind: protocol.Timeout, Timer: id}, nil, nil)
	}
}

// An outbox is where a loop puts what it sends. The writers of sessions are woken once for many messages.
type outbox struct {
	n      *Node
	dirty  []*session                                                                               // to be signaled
	defers func(s *session, t transport.Type, kind Kind, name string, body []byte, state bool) bool // until later; nil: nothing
	state  []byte                                                                                   // scratch
}

// send appends an item to the window of a session, at once or, at a durable member, when what led to it is in the journal.
func (o *outbox) send(p *session, t transport.Type, kind Kind, name string, body []byte, state bool) {
	if o.defers != nil && o.defers(p, t, kind, name, body, state) {
		return
	}
	o.push(p, t, kind, name, body, state)
}

// push appends an item to the window of a session, which is dropped when it is full.
func (o *outbox) push(p *session, t transport.Type, kind Kind, name string, body []byte, state bool) {
	if err := p.send(t, kind, name, body, state); err != nil {
		o.n.sessions.drop(p, err, nil)
		return
	}
	if p.signaled.CompareAndSwap(false, true) {
		o.dirty = append(o.dirty, p)
	}
}

// direct is in how many sessions what was sent is written by the goroutine that sent it. To write more one after the other would
// take longer than to wake their writers.
const direct = 8

// unlockAndFlush ends a step of the loop, and has everything written that was sent in it. list is memory for the sessions.
func (l *loop) unlockAndFlush(list *[]*session) {
	dirty := append((*list)[:0], l.out.dirty...)
	clear(l.out.dirty)
	l.out.dirty = l.out.dirty[:0]
	l.steps.give()
	for k, p := range dirty {
		p.signal(k < direct)
	}
	clear(dirty)
	*list = dirty
}
