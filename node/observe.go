package node

import (
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// A Support is one that this member has just given to a client, or has just ended.
type Support struct {
	Lock    string
	Kind    Kind
	Client  protocol.ID
	Label   string // of the client, and of its user of this lock: FullLabel
	Request uint64 // the time of the client's request: see RequestID
	Ended   bool
	Held    time.Duration // how long it lasted; Ended
}

// An owner is whom a member supports in one lock; the zero owner is nobody.
type owner struct {
	client  protocol.ID
	request uint64        // whatever the client says, 0 too
	since   time.Duration // after the node's start
	session *session      // with the client when it got the support; nil: none
}

// nobody is false for whatever a member supports, so that no request goes unseen. The
// client with id 0 is a member, which wants no lock.
func (o owner) nobody() bool { return o.client == 0 && o.request == 0 }

// name is the RequestID of what a member supports, "" for nothing.
func (o owner) name() string {
	if o.nobody() {
		return ""
	}
	return RequestID(o.client, o.request)
}

// owned notes whom the member supports in a lock from now on: see protocol.Owner.
func (s *shard) owned(i *instance, client protocol.ID, request uint64) {
	old := i.owner
	if old.client == client && old.request == request {
		return
	}
	now := time.Since(s.n.started)
	i.owner = owner{client: client, request: request}
	if !i.owner.nobody() {
		i.owner.since, i.owner.session = now, s.sessions[client]
	}
	if !old.nobody() {
		s.tally.ended++
		s.tally.supports--
		s.held.Add(now - old.since)
		s.audit(i, old, true, now)
	}
	if !i.owner.nobody() {
		s.tally.given++
		s.tally.supports++
		s.audit(i, i.owner, false, now)
	}
	if !old.nobody() && !i.owner.nobody() && old.client != client {
		s.tally.passed++
	}
}

func (s *shard) audit(i *instance, o owner, ended bool, now time.Duration) {
	if s.n.c.Audit == nil {
		return
	}
	a := Support{Lock: i.name, Kind: i.kind, Client: o.client, Request: o.request, Ended: ended}
	if o.session != nil {
		o.session.mu.Lock()
		a.Label = FullLabel(o.session.label, s.labels.get(i, o.client))
		o.session.mu.Unlock()
	}
	if ended {
		a.Held = now - o.since
	}
	s.n.c.Audit(a)
}

// noteWaiting keeps the sum of the queues of all locks: each step changes one.
func (s *shard) noteWaiting(i *instance, waiting int) {
	if !i.removed {
		s.tally.waiting += waiting - int(i.waiting)
		i.waiting = int32(waiting)
	}
}
