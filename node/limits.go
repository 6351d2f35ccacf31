package node

import (
	"iter"
	"slices"
	"time"

	"github.com/poundlock/poundlock/internal/shrinkmap"
	"github.com/poundlock/poundlock/protocol"
)

// limits know which peer uses which instances of a loop, and how much of that a client may have.
type limits struct {
	n      *Node
	place  int           // of the loop in Node.loops
	labels *labels       // of those that use one
	rests  time.Duration // after the node's start: until then no search, see admit
}

// uses are the instances of a loop that a peer uses: whose locks it holds or wants, or has just left. Most peers use one: it takes no
// memory of its own.
type uses struct {
	one  *instance // nil: none, or many
	many *many
}

// many are more than one, or once were.
type many struct {
	shrinkmap.Map[*instance, struct{}]
	full time.Duration // after the node's start: until then no search for those that it has left
}

// of are those of a peer.
func (l *limits) of(p *session) *uses { return &p.uses[l.place] }

func (u *uses) has(i *instance) bool {
	return u.one == i || u.many != nil && u.many.Has(i)
}

func (u *uses) len() int {
	switch {
	case u.many != nil:
		return u.many.Len()
	case u.one != nil:
		return 1
	}
	return 0
}

// add adds an instance that is not there.
func (u *uses) add(i *instance) {
	if u.many == nil && u.one == nil {
		u.one = i
		return
	}
	if u.many == nil {
		u.many = new(many)
		u.many.Set(u.one, struct{}{})
		u.one = nil
	}
	u.many.Set(i, struct{}{})
}

// remove takes an instance out that is there.
func (u *uses) remove(i *instance) {
	if u.one == i {
		u.one = nil
		return
	}
	u.many.Delete(i)
}

// all are the instances. The loop may remove some.
func (u *uses) all() iter.Seq[*instance] {
	return func(yield func(*instance) bool) {
		if u.many == nil {
			if u.one != nil {
				yield(u.one)
			}
			return
		}
		for i := range u.many.All() {
			if !yield(i) {
				return
			}
		}
	}
}

// note records that a peer uses an instance, where the end of its
// session concerns only those. It says why not, where there is too much of that already.
func (l *limits) note(i *instance, p *session) (why string) {
	if l.n.detector != nil || l.n.roles.restores(p.id) {
		return ""
	}
	locks := l.of(p)
	if locks.has(i) {
		return ""
	}
	if why := l.admit(p, locks); why != "" {
		return why
	}
	l.connect(i, p)
	return ""
}

// restore notes what a peer uses as a table that was handed over says.
func (l *limits) restore(i *instance, p *session) {
	l.n.sessions.origins.pair(p, 1)
	l.connect(i, p)
}

func (l *limits) connect(i *instance, p *session) {
	l.of(p).add(i)
	x := i.serve()
	x.peers = append(x.peers, p)
}

// admit counts one more instance for a peer, or says why a client may not use it. Those that
// do not know it any more do not count; where a search for them finds few, the next one is a second later. A loop
// spends no more than a tenth of its time on searches, however many clients are at their limits.
func (l *limits) admit(p *session, locks *uses) string {
	origins := &l.n.sessions.origins
	why := origins.admit(p)
	if why == "" {
		return ""
	}
	now, before := time.Since(l.n.started), locks.len()
	if before == 0 || now < l.rests || locks.many != nil && now < locks.many.full {
		return why
	}
	for i := range locks.all() {
		if !i.mentions(p) {
			i.forget(p)
			l.leave(i, p)
		}
	}
	end := time.Since(l.n.started)
	l.rests = end + 9*(end-now)
	if locks.many != nil && locks.len() >= before-before/4 {
		locks.many.full = now + time.Second
	}
	return origins.admit(p)
}

// settle lets the peers of an instance go whose owner has left, if nobody waits for it. Those that have left one which
// others have, a search finds: see admit.
func (l *limits) settle(i *instance) {
	if !slices.ContainsFunc(i.peers(), i.mentions) {
		l.remove(i)
	}
}

// mentions reports whether a process knows a peer, as one that holds its lock or waits for it.
func (i *instance) mentions(p *session) bool {
	st, err := i.process.Standing()
	known := func(r protocol.Request) bool { return r.User == p.id }
	return err != nil || slices.ContainsFunc(st.Holders, known) || slices.ContainsFunc(st.Waiters, known)
}

// end takes a session out, and returns the instances that it used.
func (l *limits) end(p *session) uses {
	concerned := *l.of(p)
	*l.of(p) = uses{}
	l.n.sessions.origins.pair(p, -concerned.len())
	return concerned
}

// keepPeers is for how many peers an instance keeps memory that has none: the next one comes soon.
const keepPeers = 2

// remove takes an instance out.
func (l *limits) remove(i *instance) {
	if i.serves == nil {
		return
	}
	peers := i.serves.peers
	for _, p := range peers {
		l.leave(i, p)
	}
	clear(peers)
	if cap(peers) > keepPeers {
		peers = nil
	}
	i.serves.peers = peers[:0]
}

// leave notes that a peer does not use an instance any more.
func (l *limits) leave(i *instance, p *session) {
	l.labels.set(i, p.id, nil)
	if locks := l.of(p); locks.has(i) {
		locks.remove(i)
		l.n.sessions.origins.pair(p, -1)
	}
}
