package node

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/internal/histogram"
	"github.com/poundlock/poundlock/protocol"
)

// A Support is one that this member has just given to a client, has just ended, or shares in a group from now on.
type Support struct {
	Lock    string
	Kind    Kind
	Client  protocol.ID
	Label   string        // of the client, and of its user of this lock: FullLabel
	Request uint64        // the time of the client's request: see RequestID
	Group   string        // that it shares the support in, as protocol.Request has it; "" is alone
	Held    time.Duration // how long it lasted so far; 0 if it was just given
	Ended   bool
	// Downgraded: the client is alone no more, and goes on in Group.
	Downgraded bool
}

// An owner is whom a member supports in one lock, or one of those; the zero owner is nobody.
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

// Sharers are the owners of one lock that share it, beside the one that its instance has.
type sharers struct {
	group  string  // for people
	others []owner // by client
}

// find returns the place of a client, or the one where it belongs.
func (s *sharers) find(client protocol.ID) (at int, found bool) {
	return slices.BinarySearchFunc(s.others, client, func(o owner, c protocol.ID) int { return cmp.Compare(o.client, c) })
}

// A change is that a member supports a request, or does not any more.
type change struct {
	owner         // since is not set
	group  string // that it shares in
	parted bool   // it does not any more
	alone  bool   // and no other one: see protocol.Owner
}

// An audit is what a loop counts, and tells whoever audits it.
type audit struct {
	n       *Node
	labels  *labels
	shared  map[*instance]*sharers // where owners share
	changes []change               // of the current step, where owners share
	tally   tally
	held    histogram.Histogram   // how long supports lasted
	latest  atomic.Pointer[tally] // a copy for others
}

func newAudit(n *Node, l *labels) audit {
	k := len(n.messages)
	return audit{n: n, labels: l, shared: map[*instance]*sharers{}, tally: tally{sent: make([]uint64, k), received: make([]uint64, k)}}
}

// owned notes whom alone the member supports in a lock from now on, and in which session: see protocol.Owner.
func (a *audit) owned(i *instance, client protocol.ID, request uint64, with *session) {
	if len(a.changes) > 0 || len(a.shared) > 0 && a.shared[i] != nil {
		a.changes = append(a.changes, change{owner: owner{client: client, request: request, session: with}, alone: true})
		return
	}
	old := i.owner()
	if old.client == client && old.request == request {
		return
	}
	now := time.Since(a.n.started)
	own := &i.serve().owner
	*own = owner{client: client, request: request}
	if !own.nobody() {
		own.since, own.session = now, with
	}
	if !old.nobody() {
		a.tally.ended++
		a.tally.supports--
		a.held.Add(now - old.since)
		a.tell(i, old, Support{Ended: true}, now)
	}
	if !own.nobody() {
		a.tally.given++
		a.tally.supports++
		a.tell(i, *own, Support{}, now)
	}
	if !old.nobody() && !own.nobody() && old.client != client {
		a.tally.passed++
	}
}

// joined notes whom the member supports in a lock, too, until the step is over: see protocol.Joined.
func (a *audit) joined(client protocol.ID, request uint64, group string, with *session) {
	a.changes = append(a.changes, change{owner: owner{client: client, request: request, session: with}, group: group})
}

// parted notes whom the member does not support any more: see protocol.Parted.
func (a *audit) parted(client protocol.ID, request uint64) {
	a.changes = append(a.changes, change{owner: owner{client: client, request: request}, parted: true})
}

// settle tells what a step has changed among owners that share: first what has ended, then what was given.
func (a *audit) settle(i *instance) {
	now := time.Since(a.n.started)
	last, alone := make(map[protocol.ID]change, len(a.changes)), false
	for _, c := range a.changes {
		if c.alone {
			alone = true
			clear(last)
		}
		last[c.client] = c
	}
	ended, passed := protocol.ID(0), false // ended is the client of the first one that has
	end := func(known owner) {
		if c, named := last[known.client]; named && !c.parted && c.request == known.request {
			return
		}
		a.end(i, known, now)
		if ended == 0 {
			ended = known.client
		}
	}
	for _, c := range a.changes { // in their order
		if known, ok := a.owner(i, c.client); ok {
			end(known)
		}
	}
	if alone {
		for _, known := range a.owners(i) {
			end(known)
		}
		delete(a.shared, i)
	}
	for _, c := range a.changes {
		if c = last[c.client]; c.parted || c.nobody() {
			continue
		}
		known, ok := a.owner(i, c.client)
		downgraded := ok && a.group(i) == "" && c.group != ""
		if c.group != "" {
			a.sharersOf(i).group = c.group
		}
		if downgraded {
			a.tell(i, known, Support{Downgraded: true}, now)
		}
		if !ok {
			c.since = now
			a.give(i, c.owner, now)
			passed = passed || ended != 0 && c.client != ended
		}
	}
	if passed {
		a.tally.passed++
	}
	a.changes = a.changes[:0]
	if cap(a.changes) > keepQueue {
		a.changes = nil
	}
}

// owner is what the member gives to a client.
func (a *audit) owner(i *instance, client protocol.ID) (o owner, ok bool) {
	if own := i.owner(); own.client == client && !own.nobody() {
		return own, true
	}
	if c := a.shared[i]; c != nil {
		if at, found := c.find(client); found {
			return c.others[at], true
		}
	}
	return o, ok
}

// group is the one that owners of a lock share, "" where one is alone.
func (a *audit) group(i *instance) string {
	if c := a.shared[i]; c != nil {
		return c.group
	}
	return ""
}

// owners are all to whom the member gives a lock.
func (a *audit) owners(i *instance) (all []owner) {
	if own := i.owner(); !own.nobody() {
		all = append(all, own)
	}
	if c := a.shared[i]; c != nil {
		all = append(all, c.others...)
	}
	return all
}

func (a *audit) sharersOf(i *instance) *sharers {
	if a.shared[i] == nil {
		a.shared[i] = &sharers{}
	}
	return a.shared[i]
}

// add makes o one of the owners.
func (a *audit) add(i *instance, o owner) {
	if a.tally.supports++; i.owner().nobody() {
		i.serve().owner = o
		return
	}
	c := a.sharersOf(i)
	at, _ := c.find(o.client)
	c.others = slices.Insert(c.others, at, o)
}

func (a *audit) give(i *instance, o owner, now time.Duration) {
	a.add(i, o)
	a.tally.given++
	a.tell(i, o, Support{}, now)
}

func (a *audit) end(i *instance, o owner, now time.Duration) {
	a.tally.ended++
	a.tally.supports--
	a.held.Add(now - o.since)
	a.tell(i, o, Support{Ended: true}, now)
	c := a.shared[i]
	switch {
	case i.owner().client != o.client:
		at, _ := c.find(o.client)
		c.others = slices.Delete(c.others, at, at+1)
	case c == nil || len(c.others) == 0:
		i.serve().owner = owner{}
		delete(a.shared, i)
	default: // any other one
		last := len(c.others) - 1
		i.serve().owner, c.others = c.others[last], c.others[:last]
	}
}

// remove notes that an instance goes.
func (a *audit) remove(i *instance) {
	a.changes = a.changes[:0]
	a.owned(i, 0, 0, nil)
	if len(a.changes) > 0 {
		a.settle(i)
	}
}

// tell tells the audit what became of the support of o.
func (a *audit) tell(i *instance, o owner, r Support, now time.Duration) {
	if a.n.c.Audit == nil {
		return
	}
	r.Lock, r.Kind, r.Client, r.Request, r.Group = i.name, i.kind, o.client, o.request, a.group(i)
	if o.session != nil {
		o.session.mu.Lock()
		r.Label = FullLabel(o.session.label, a.labels.get(i, o.client))
		o.session.mu.Unlock()
	}
	r.Held = now - o.since
	a.n.c.Audit(r)
}

// waits keeps the sum of the queues of all locks: each step changes one.
func (a *audit) waits(i *instance, waiting int) {
	if !i.removed {
		a.tally.waiting += waiting - int(i.waiting)
		i.waiting = int32(waiting)
	}
}
