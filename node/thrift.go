package node

import (
	"cmp"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// Thrift: while the members are busy, a Try of a client asks a quorum of them first, where its algorithm can do so (protocol.Info.Thrifty): they have
// a message less to handle, and are through with the others sooner. While they are not, it asks all of them, and does not wait for the slowest.

// A thrift is what a client knows of the members for that.
type thrift struct {
	n     *Node
	later atomic.Uint64 // the members that are asked later, a bit each, and ranked; 0: unknown
	least atomic.Int64  // that a user ever waited to be inside, since the last connection came, ns; 0: unknown
	mean  atomic.Int64  // of about the last recent users, ns
}

const (
	ranked = 1 << 63
	recent = 8
	busy   = 4 // members are, while users wait so many times as long as the one that waited least
)

// waited notes how long a user has waited to be inside that nobody else kept waiting.
func (t *thrift) waited(d time.Duration) {
	mean := t.mean.Load()
	t.mean.Store(mean + (max(int64(d), 1)-mean)/recent) // of two at once one counts
	if least := t.least.Load(); least == 0 || int64(d) < least {
		t.least.Store(max(int64(d), 1))
	}
}

// changed notes that other members may be the slowest now.
func (t *thrift) changed() { t.later.Store(0) }

// connected notes that there is a new connection, perhaps by another way. While members are busy then, that counts as usual until they are not.
func (t *thrift) connected() {
	t.changed()
	t.least.Store(0)
}

// rank looks which members answer last: those without a connection, and then those whose heartbeats take longest. Less than twice as long is
// chance, and less than a millisecond is nothing: of equal ones each client leaves out others, so that all have as much to do.
func (t *thrift) rank() (later uint64) {
	n := t.n.c.System.N
	slowness := make([]int, n)
	for j := range slowness {
		slowness[j] = bits.UintSize
	}
	for _, s := range t.n.sessions.list() {
		s.mu.Lock()
		if s.conn != nil && t.n.roles.isMember(s.id) {
			slowness[s.id] = bits.Len64(uint64(s.roundTrip / time.Millisecond))
		}
		s.mu.Unlock()
	}
	order := make([]int, n)
	for k := range order {
		order[k] = int((uint64(t.n.c.ID) + uint64(k)) % uint64(n))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(slowness[a], slowness[b]) })
	later = ranked
	for _, j := range order[t.n.pacer.quorum:] {
		later |= 1 << j
	}
	t.later.Store(later)
	return later
}

// A trial is one Try at a time of a loop whose wait is measured.
type trial struct {
	name    string // of its lock; "": there is none
	began   time.Duration
	answers int // so far
}

// later is which members a Try asks later. Where somebody else wanted a lock these are not those to which something goes now anyway, such as what the
// user before it has left: they may have to be asked soon.
func (l *loop) later(kind Kind, name string) (later uint64) {
	if l.n.roles.member() || !l.n.c.Hosts[kind].Info().Thrifty || l.n.c.System.N > protocol.MostLater {
		return 0
	}
	if l.trial.name == "" {
		l.trial = trial{name: name, began: l.now()}
	}
	t := &l.n.thrift
	if least := t.least.Load(); least == 0 || t.mean.Load() < busy*least {
		return 0
	}
	all := t.later.Load()
	if all == 0 {
		all = t.rank()
	}
	for all &^= ranked; all != 0; all &= all - 1 {
		id := protocol.ID(bits.TrailingZeros64(all))
		if s := l.sessions[id]; s != nil && (l.alone || !s.signaled.Load()) {
			later |= 1 << id
		}
	}
	return later
}

// answers notes a message for a lock. Where more come than one from each member, some of which may answer the user before, somebody else has it. One
// that gets in with fewer may have waited for somebody, too: then the members seem busy, which does no harm.
func (l *loop) answers(name string) {
	if name == l.trial.name {
		if l.trial.answers++; l.trial.answers > l.n.c.System.N {
			l.trial.name, l.alone = "", false
		}
	}
}

// gone notes that the user of a lock has left, or never will get in.
func (l *loop) gone(name string) {
	if name == l.trial.name {
		l.trial.name = ""
	}
}

// enters notes that the user of a lock is inside.
func (l *loop) enters(name string) {
	if name == l.trial.name {
		l.n.thrift.waited(l.now() - l.trial.began)
		l.alone = true
		l.gone(name)
	}
}
