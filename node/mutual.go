package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// # Members that hold leases at each other
//
// Where the users are the members, and their algorithm asks for a LeaseDetector, each end of a session holds a lease at
// the other one, and grants it one. A session ends at an end when the lease that this end holds is over, or for another
// reason: that is Lapsed. Then the two ends are apart. An end has had Ended when the lease that it granted is over, too, or
// when the life at the other end says that it has had Lapsed. Only then does it ask for a new session, and whoever is asked for one
// by the same life hears so that the other end has had both; a new life has to wait for the lease of the one before. So both ends
// get Lapsed before either gets Ended, and both get Ended before either gets Restore: protocol.LeaseDetector.
//
// A process that is stopped gets its Lapsed late, but before anything else: its loops look at the leases before they go
// on. Whatever it did after the lease was over it did before it was stopped.
//
// In its first life a member has no process before it has met all others: see gate.go. A later life begins apart from all.

// A link is what the processes of a loop know of another member.
type link struct {
	lapsed, ended bool // since the last Restore
	broken        bool // the first session is over, or this is a later life
}

// errRevoked is why a session ends whose lease a process revokes.
var errRevoked = &end{"this member has revoked the lease", CauseRevoked, true}

// rejoin has a later life begin apart from all members: the one before may have granted leases.
func (ss *sessions) rejoin() {
	for id := range ss.n.roles.members {
		if id := protocol.ID(id); id != ss.n.roles.self {
			ss.apart[id] = ss.n.c.Boot() + ss.n.c.Lease
		}
	}
}

// part notes that a session has ended here. ss.mu is held, and s changes no more.
func (ss *sessions) part(s *session, why error) {
	if !ss.n.roles.mutual() {
		return
	}
	until := max(s.granted.End(), s.lease.End())
	if knows(why) {
		until = 0
	}
	ss.apart[s.id] = until
}

// knows reports whether a session has ended because the peer said so, in the life that had it: its processes have had Lapsed. A new
// life proves nothing: the one before may go on, where two are started by one name, and so may what its host runs under a lock, which
// counts on what that life said last.
func knows(why error) bool { return why == errBye || why == errNewer }

// reunite tells the loops of those that are apart for long enough at now, and returns when the next one will be.
// ss.mu is held.
func (ss *sessions) reunite(now, next time.Duration) time.Duration {
	for id, until := range ss.apart {
		if until > now {
			next = min(next, until)
			continue
		}
		delete(ss.apart, id)
		ss.n.postUrgent(func(l *loop) { l.ended(id) })
		ss.change()
	}
	return next
}

// isApart reports whether a session with a member is over, and the member may not know.
func (ss *sessions) isApart(id protocol.ID) bool {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	_, apart := ss.apart[id]
	return apart
}

// asked notes that a member which has no session here asks for a new one: so it has had Ended. It refuses a Hello that is older
// than the last session.
func (ss *sessions) asked(h transport.Hello) *transport.Refuse {
	if !ss.n.roles.mutual() || !ss.n.roles.isMember(h.From) {
		return nil
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if last := ss.ends[h.From]; h.Incarnation == last.incarnation && h.Session <= last.number {
		return &transport.Refuse{Code: transport.Stale, What: "session", Mine: fmt.Sprint(last.number), Yours: fmt.Sprint(h.Session)}
	}
	if until, apart := ss.apart[h.From]; apart {
		left := until - ss.n.c.Boot()
		if last := ss.ends[h.From]; last.incarnation != 0 && h.Incarnation != last.incarnation && left > 0 {
			return &transport.Refuse{
				Code: transport.Stale, What: "lease of the life before",
				Mine: fmt.Sprintf("%v are left of it", left.Round(time.Millisecond)), Yours: "a new life",
			}
		}
		ss.apart[h.From] = 0
		ss.reunite(ss.n.c.Boot(), 0)
	}
	return nil
}

// wake has a member make its process of a lock for which a user waits here, if it may not have one: a process that has nothing to
// say is not kept, and after a session has ended, or at a new life, the processes of all are to say where they are.
func (l *loop) wake(name string, id protocol.ID) {
	p, u := l.sessions[id], l.users.get(name)
	if p != nil && u != nil && u.section == protocol.InTry && slices.ContainsFunc(l.make.links, func(k link) bool { return k.broken }) {
		l.out.send(p, transport.WakeItem, u.kind, name, nil, false)
	}
}

// wakened makes the process that a member wakes.
func (l *loop) wakened(e *message) {
	if l.instances.View()[string(e.name)] != nil || l.users.failed[string(e.name)] != "" {
		return
	}
	if why := l.names.unserved(nil, e); why != "" {
		l.names.refuse(e, why)
		return
	}
	l.dropIfIdle(l.create(e.kind, string(e.name), nil))
}

// ended tells all processes that the session with a member is over at both ends.
func (l *loop) ended(id protocol.ID) {
	k := &l.make.links[id]
	if !k.lapsed || k.ended {
		return
	}
	k.ended = true
	clear(l.make.fresh)
	l.stepAll(protocol.NewEnded(id))
}

// replay are the events of a new process about the other members: what it would have heard by now. In a first life it has had
// sessions with all at first.
func (f *factory) replay() {
	first := !joins(f.n.incarnation)
	for id, k := range f.links {
		if id := protocol.ID(id); id != f.n.c.ID && first {
			life := f.live[id]
			if k.broken {
				life = 1
			}
			f.events = append(f.events, protocol.NewRestore(id, life))
		}
	}
	for id, k := range f.links {
		id := protocol.ID(id)
		if id == f.n.c.ID || !k.broken {
			continue
		}
		if first {
			f.events = append(f.events, protocol.NewLapsed(id))
		}
		if k.ended || !k.lapsed {
			f.events = append(f.events, protocol.NewEnded(id))
		}
		if !k.lapsed {
			f.events = append(f.events, protocol.NewRestore(id, f.live[id]))
		}
	}
}

// A lull is between which of its first events a new process can send to whom: to nobody before it has heard of
// the present session, for what it sent before would have been sent in an earlier one.
type lull []bool // by member: not yet

// begin has the lull begin, where members hold leases at each other.
func (u *lull) begin(r *roles) {
	if !r.mutual() {
		return
	}
	*u = (*u)[:0]
	for range r.members {
		*u = append(*u, true)
	}
}

// hear notes one of the first events; rest are those that follow.
func (u lull) hear(in protocol.Input, rest []protocol.Input) {
	if len(u) == 0 || in.Kind != protocol.Restore {
		return
	}
	for _, later := range rest {
		if later.Kind == protocol.Suspect && later.From == in.From {
			return
		}
	}
	u[in.From] = false
}

// end has the lull end.
func (u *lull) end() { *u = (*u)[:0] }

// mutes reports whether nothing goes to a member.
func (u lull) mutes(id protocol.ID) bool { return len(u) > 0 && u[id] }
