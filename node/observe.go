package node

import (
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/internal/histogram"
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

// An audit is what a loop counts, and tells whoever audits it.
type audit struct {
	n      *Node
	labels *labels
	tally  tally
	held   histogram.Histogram   // how long supports lasted
	latest atomic.Pointer[tally] // a copy for others
}

func newAudit(n *Node, l *labels) audit {
	k := len(n.messages)
	return audit{n: n, labels: l, tally: tally{sent: make([]uint64, k), received: make([]uint64, k)}}
}

// owned notes whom the member supports in a lock from now on, and in which session: see protocol.Owner.
func (a *audit) owned(i *instance, client protocol.ID, request uint64, with *session) {
	old := i.owner
	if old.client == client && old.request == request {
		return
	}
	now := time.Since(a.n.started)
	i.owner = owner{client: client, request: request}
	if !i.owner.nobody() {
		i.owner.since, i.owner.session = now, with
	}
	if !old.nobody() {
		a.tally.ended++
		a.tally.supports--
		a.held.Add(now - old.since)
		a.tell(i, old, true, now)
	}
	if !i.owner.nobody() {
		a.tally.given++
		a.tally.supports++
		a.tell(i, i.owner, false, now)
	}
	if !old.nobody() && !i.owner.nobody() && old.client != client {
		a.tally.passed++
	}
}

func (a *audit) tell(i *instance, o owner, ended bool, now time.Duration) {
	if a.n.c.Audit == nil {
		return
	}
	r := Support{Lock: i.name, Kind: i.kind, Client: o.client, Request: o.request, Ended: ended}
	if o.session != nil {
		o.session.mu.Lock()
		r.Label = FullLabel(o.session.label, a.labels.get(i, o.client))
		o.session.mu.Unlock()
	}
	if ended {
		r.Held = now - o.since
	}
	a.n.c.Audit(r)
}

// waits keeps the sum of the queues of all locks: each step changes one.
func (a *audit) waits(i *instance, waiting int) {
	if !i.removed {
		a.tally.waiting += waiting - int(i.waiting)
		i.waiting = int32(waiting)
	}
}
