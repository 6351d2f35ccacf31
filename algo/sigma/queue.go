package sigma

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// A waiter is a request in the queue of a server.
type waiter struct {
	entry
	mode   uint64     // the group that it wants or prefers, 0: to be alone; and inside, promised
	others *[2]uint64 // further groups, of which it wants any one; nil: none
	head   uint64     // its head start, ns
}

// inside marks a waiter whose client is inside, and comes before all who wait.
const inside = 1 << 63

// promised marks the waiter to whom the server has promised its next support: it comes before all others.
const promised = 1 << 62

func newWaiter(e entry, groups choice, head uint64, in bool) waiter {
	w := waiter{entry: e, mode: groups[0], head: head}
	if in {
		w.mode |= inside
	}
	if groups[1] != 0 {
		w.others = &[2]uint64{groups[1], groups[2]}
	}
	return w
}

func (w waiter) inside() bool { return w.mode&inside != 0 }

func (w waiter) promised() bool { return w.mode&promised != 0 }

func (w waiter) group() uint64 { return w.mode &^ (inside | promised) }

func (w waiter) groups() choice {
	if w.others == nil {
		return choice{w.group()}
	}
	return choice{w.group(), w.others[0], w.others[1]}
}

// takes reports whether a group is one of those that the request wants.
func (w waiter) takes(group uint64) bool {
	return w.group() == group || w.others != nil && (w.others[0] == group || w.others[1] == group)
}

// precedes reports whether w would come before an heir without the promise.
func (w waiter) precedes(heir waiter) bool {
	heir.mode &^= promised
	return w.compare(heir) < 0
}

// A rank is a place in the order of service. The request counts as made its head start earlier; the timestamp itself stays
// what names it, and its token.
type rank struct {
	mode  uint64 // only inside and promised
	stamp protocol.Stamp
}

func (w waiter) rank() rank {
	return rank{w.mode & (inside | promised), protocol.Stamp{Time: w.time + protocol.MaxHeadStart - w.head, ID: w.client}}
}

// compare is the order of service.
func (w waiter) compare(v waiter) int { return w.rank().compare(v.rank()) }

func (r rank) compare(o rank) int {
	switch {
	case r.mode == o.mode:
		return r.stamp.Compare(o.stamp)
	case r.mode&promised != 0, o.mode&promised == 0 && r.mode == inside:
		return -1
	}
	return 1
}

// A queue holds who waits at a server, in the order of service, each client once.
// The nil queue is empty.
type queue struct {
	waiters []waiter
	// index finds the waiters of a long queue, by client. It is nil in a short one, which is searched: most queues are.
	index  map[protocol.ID]rank
	shared *shared // nil: the owner shares with nobody
}

// A queue with more than long waiters has an index, until half of them are gone.
const long = 64

func (q *queue) all() []waiter {
	if q == nil {
		return nil
	}
	return q.waiters
}

func (q *queue) len() int { return len(q.all()) }

func (q *queue) clear() {
	if q != nil {
		*q = queue{waiters: q.waiters[:0]}
	}
}

// find returns the place of client c, or -1.
func (q *queue) find(c protocol.ID) int {
	if q == nil || q.index == nil {
		return slices.IndexFunc(q.all(), func(w waiter) bool { return w.client == c })
	}
	r, ok := q.index[c]
	if !ok {
		return -1
	}
	return q.place(r)
}

// place is how many waiters come before a rank.
func (q *queue) place(r rank) int {
	i, _ := slices.BinarySearchFunc(q.waiters, r, func(w waiter, r rank) int { return w.rank().compare(r) })
	return i
}

// insert adds the waiter of a client that is not in the queue.
func (q *queue) insert(w waiter) {
	i := len(q.waiters)
	if i > 0 && w.compare(q.waiters[i-1]) < 0 { // most come last
		i = q.place(w.rank())
	}
	q.waiters = slices.Insert(q.waiters, i, w)
	switch {
	case q.index != nil:
		q.index[w.client] = w.rank()
	case len(q.waiters) > long:
		q.index = make(map[protocol.ID]rank, 2*long)
		for _, w := range q.waiters {
			q.index[w.client] = w.rank()
		}
	}
}

// promise marks the first waiter.
func (q *queue) promise() {
	w := &q.waiters[0]
	w.mode |= promised
	if q.index != nil {
		q.index[w.client] = w.rank()
	}
}

// remove takes waiter i out. The first one of a long queue goes without moving
// the others.
func (q *queue) remove(i int) waiter {
	w := q.waiters[i]
	if q.index == nil {
		q.waiters = slices.Delete(q.waiters, i, i+1)
		return w
	}
	delete(q.index, w.client)
	if i == 0 {
		q.waiters = q.waiters[1:]
	} else {
		q.waiters = slices.Delete(q.waiters, i, i+1)
	}
	if len(q.waiters) <= long/2 {
		q.waiters, q.index = slices.Clone(q.waiters), nil // of a large array, nothing is kept
	}
	return w
}
