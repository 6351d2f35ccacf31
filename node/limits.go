package node

import (
	"slices"
	"time"

	"github.com/poundlock/poundlock/internal/shrinkmap"
	"github.com/poundlock/poundlock/protocol"
)

// limits know which peer uses which instances of a loop, and how much of that a client may have.
type limits struct {
	n      *Node
	of     map[*session]*uses
	labels *labels       // of those that use one
	rests  time.Duration // after the node's start: until then no search, see admit
}

// uses are the instances that a peer uses: whose locks it holds or wants, or has just left.
type uses struct {
	shrinkmap.Map[*instance, struct{}]
	full time.Duration // after the node's start: until then no search for those that it has left
}

// note records that a peer uses an instance, where the end of its
// session concerns only those. It says why not, where there is too much of that already.
func (l *limits) note(i *instance, p *session) (why string) {
	locks := l.of[p]
	if locks != nil && locks.Has(i) || l.n.detector != nil || l.n.roles.restores(p.id) {
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
	if l.of[p] == nil {
		l.of[p] = &uses{}
	}
	l.of[p].Set(i, struct{}{})
	x := i.serve()
	x.peers = append(x.peers, p)
}

// admit counts one more instance for a peer, or says why a client may not use it. Those that
// do not know it any more do not count; where a search for them finds few, the next one is a second later. A loop
// spends no more than a tenth of its time on searches, however many clients are at their limits.
func (l *limits) admit(p *session, locks *uses) string {
	origins := &l.n.sessions.origins
	why := origins.admit(p)
	if why == "" || locks == nil {
		return why
	}
	now, before := time.Since(l.n.started), locks.Len()
	if now < locks.full || now < l.rests {
		return why
	}
	for i := range locks.All() {
		if !i.mentions(p) {
			i.forget(p)
			l.leave(i, p)
		}
	}
	end := time.Since(l.n.started)
	l.rests = end + 9*(end-now)
	if locks.Len() >= before-before/4 {
		locks.full = now + time.Second
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
func (l *limits) end(p *session) *uses {
	concerned := l.of[p]
	delete(l.of, p)
	if concerned == nil {
		concerned = &uses{}
	}
	l.n.sessions.origins.pair(p, -concerned.Len())
	return concerned
}

// remove takes an instance out.
func (l *limits) remove(i *instance) {
	if i.serves == nil {
		return
	}
	for _, p := range i.serves.peers {
		l.leave(i, p)
	}
	i.serves.peers = nil
}

// leave notes that a peer does not use an instance any more.
func (l *limits) leave(i *instance, p *session) {
	l.labels.set(i, p.id, nil)
	if locks := l.of[p]; locks != nil && locks.Has(i) {
		locks.Delete(i)
		l.n.sessions.origins.pair(p, -1)
	}
}
