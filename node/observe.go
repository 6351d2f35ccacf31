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
	Label   string // of the client
	Request uint64 // the time of the client's request: see RequestID
	Ended   bool
	Held    time.Duration // how long it lasted; Ended
}

// An owner is whom a member supports in one lock.
type owner struct {
	client  protocol.ID
	request uint64        // 0: nobody
	since   time.Duration // after the node's start
	session *session      // with the client when it got the support; nil: none
}

// name is the RequestID of what a member supports, "" for nothing.
func (o owner) name() string {
	if o.request == 0 {
		return ""
	}
	return RequestID(o.client, o.request)
}

// owned notes whom the member supports in a lock from now on; request 0: nobody.
func (s *shard) owned(i *instance, client protocol.ID, request uint64) {
	old := i.owner
	if old.request == request && (request == 0 || old.client == client) {
		return
	}
	now := time.Since(s.n.started)
	i.owner = owner{}
	if request != 0 {
		i.owner = owner{client, request, now, s.sessions[client]}
	}
	if old.request != 0 {
		s.tally.ended++
		s.tally.supports--
		s.held.Add(now - old.since)
		s.audit(i, old, true, now)
	}
	if request != 0 {
		s.tally.given++
		s.tally.supports++
		s.audit(i, i.owner, false, now)
	}
	if old.request != 0 && request != 0 && old.client != client {
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
		a.Label = o.session.label
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
