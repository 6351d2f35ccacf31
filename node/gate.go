package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// # Lives of members
//
// Where the users are the members, each life of a member matters to the others. An algorithm says whether it survives that
// one comes back as a new life (protocol.Recovery). In one that does not a new life would begin where the old one did, with
// the token, for one, that another member has by now. So there nobody does anything before all members have met each other,
// and whoever has met one life of a member does nothing any more when it meets another one. Where somebody acts, all have met it; so
// a new life of it never gets so far, and once all members are new lives nobody of the old ones is left.
//
// In one that survives it, a first life begins so, too: what it takes for granted, such as that all members are one
// instance, is so once all have met. And a life that says to be the first and is not never gets so far, while a member
// is up that has acted and has met the one before.

// lives are those of members that this process has met.
type lives struct {
	n     *Node
	mu    sync.Mutex
	met   []uint64             // by member: the incarnation that was met last; 0: none
	unmet map[protocol.ID]bool // of whom it is not known that they have met this one; nil: nobody waits for that
	all   chan struct{}        // closed when nobody waits
	no    error                // a member does not take this life for the first one
	noted chan struct{}        // closed when it has said so
}

// lifeOf is what a refusal is about that says so.
const lifeOf = "life of the process"

// ErrMetBefore says that a member has met an earlier life of this one, which says to be the first.
var ErrMetBefore = errors.New("a member has met an earlier life of this one")

func newLives(n *Node) *lives {
	v := &lives{n: n, met: make([]uint64, len(n.roles.members)), all: make(chan struct{}), noted: make(chan struct{})}
	gathers := n.roles.info.Users == protocol.Members && n.roles.member() && !(n.roles.comeBack() && joins(n.incarnation))
	if !gathers || len(v.met) == 1 {
		close(v.all)
		return v
	}
	v.unmet = map[protocol.ID]bool{}
	for id := range v.met {
		if id := protocol.ID(id); id != n.c.ID {
			v.unmet[id] = true
		}
	}
	return v
}

// meet refuses a life of a member that does not follow the one that was met last: it says to be the
// first, and has forgotten what the other one promised; or it says to have begun before the other one; or no
// life may follow another one. Whoever has not done anything yet may meet another one all the same.
func (v *lives) meet(id protocol.ID, incarnation uint64) *transport.Refuse {
	r := &v.n.roles
	if r.info.Users == protocol.Clients || !r.isMember(id) {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	last := v.met[id]
	switch {
	case last == 0 || last == incarnation:
	case v.unmet != nil && (!r.comeBack() || r.watched() && !joins(incarnation)):
		v.unmet[id] = true
	case !r.comeBack():
		why := fmt.Sprintf("%s has restarted, and %s does not survive that: restart all members", r.name(id), v.n.algorithm(v.n.c.anyKind()))
		v.n.post(func(l *loop) { l.breakAll(why) })
		return refusal(lifeOf, "the one that was met first: "+why, "another one")
	case !joins(incarnation):
		return refusal(lifeOf, "a later one, that joins", "the first one")
	case incarnation < last:
		return refusal("start of this life by its wall clock, which is not after that of the one before", began(last), began(incarnation))
	}
	v.met[id] = incarnation
	return nil
}

// known are the lives that were met last, by member.
func (v *lives) known() []uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.met)
}

// know notes that a member knows this process, in the life in which it was met.
func (v *lives) know(id protocol.ID, incarnation uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.unmet == nil || !v.n.roles.isMember(id) || v.met[id] != incarnation {
		return
	}
	if delete(v.unmet, id); len(v.unmet) == 0 {
		v.unmet = nil
		close(v.all)
		v.n.post(func(l *loop) { l.gate.open() })
	}
}

// away notes that a member has no connection with this one. It may be no more, so nobody begins before it is back: each
// connection makes it known again. The mutex of its session is held, so that this comes before what the next one makes known.
func (v *lives) away(id protocol.ID, incarnation uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.unmet != nil && v.n.roles.isMember(id) && v.met[id] == incarnation {
		v.unmet[id] = true
	}
}

// refused notes why a member wants nothing of this life.
func (v *lives) refused(id protocol.ID, why error) {
	var r transport.Refuse
	if !errors.As(why, &r) || r.What != lifeOf || joins(v.n.incarnation) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.no == nil {
		v.no = fmt.Errorf("%w: %s: %w", ErrMetBefore, v.n.roles.name(id), r)
		close(v.noted)
	}
}

// Met is closed when this member lets its users try: at once, or where members gather, when all know this one.
func (n *Node) Met() <-chan struct{} { return n.lives.all }

// Gathering reports whether Met is still to come.
func (n *Node) Gathering() bool {
	select {
	case <-n.Met():
		return false
	default:
		return true
	}
}

// WaitMet waits for Met. It returns ErrMetBefore where a member says that this is not the first life, and what stands in the way, as
// WaitAlive does, when ctx ends first.
func (n *Node) WaitMet(ctx context.Context) error {
	if !n.Gathering() {
		return nil
	}
	select {
	case <-n.Met():
		return nil
	case <-n.lives.noted:
		return n.lives.no
	case <-ctx.Done():
		return n.sessions.unreachable(len(n.roles.members)-1, context.Cause(ctx))
	case <-n.Closing():
		return ErrClosed
	}
}

// A gate keeps a loop from users and from messages of others until all members know this process. Messages stay in
// the line meanwhile.
type gate struct {
	l     *loop
	shut  bool
	tries []event
}

func (g *gate) open() {
	g.shut = false
	g.l.journal.noteBegin()
	g.l.beginReplicas()
	for i := range g.tries {
		g.l.handle(&g.tries[i])
	}
	g.tries = nil
	g.l.inbox.signal() // for the line
}

// holds keeps a Try until the gate opens.
func (g *gate) holds(e *event) bool {
	if g.shut {
		g.tries = append(g.tries, *e)
	}
	return g.shut
}

// lets takes back a Try that was kept, and lets its user go.
func (g *gate) lets(name string) bool {
	for i, e := range g.tries {
		if e.name == name {
			g.tries = slices.Delete(g.tries, i, i+1)
			g.turn(name, nil)
			return true
		}
	}
	return false
}

// turn turns a user away whose Try was kept.
func (g *gate) turn(name string, why error) {
	u := g.l.users.get(name)
	g.l.users.leave(name)
	g.l.tell(name, func() { u.Rem(why) })
}

// breakAll closes all locks, those of later, too, because nothing here is sound any more.
func (l *loop) breakAll(why string) {
	if l.users.broken(why) {
		l.n.c.Log.Error("all locks are closed", "reason", why)
	}
	for _, i := range l.instances.All() {
		l.fail(i, why)
	}
}
