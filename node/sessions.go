package node

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
	"github.com/poundlock/poundlock/wrap/reliable"
)

// sessions are those of a node, and what became of earlier ones. A session is here from its beginning to its end.
type sessions struct {
	n *Node

	mu      sync.RWMutex                  // taken before the mutex of a loop's inbox
	byPeer  map[protocol.ID]*session      // those that have not ended
	origins origins                       // of those of clients
	dials   map[protocol.ID]error         // the last failure to reach a member
	ends    map[protocol.ID]ended         // the last session with a member that has ended
	apart   map[protocol.ID]time.Duration // mutual.go: until then the lease of a member lasts whose session is over
	changed chan struct{}                 // closed when a connection comes up, or a dial fails
	frozen  bool                          // no lease lapses
	closing chan struct{}                 // closed when Close begins, and then no session does

	watch    chan struct{}          // wakes run
	leased   atomic.Pointer[leased] // where this node holds leases; nil: unknown
	unacked  atomic.Int64           // bytes in all windows
	delay    atomic.Int64           // of messages, ns, as measured; 0: unknown
	greeting atomic.Int32           // handshakes for leases that this end has begun and not ended, and good-byes of demand
}

// The sessions that are leased have their leases, those of this node, for a while at least. It never changes.
type leased struct {
	until   time.Duration          // a reading of Boot
	numbers map[protocol.ID]uint64 // of the sessions, by peer
}

// leases returns what is known of them at now, nil: nothing.
func (ss *sessions) leases(now time.Duration) *leased {
	if have := ss.leased.Load(); have != nil && now < have.until {
		return have
	}
	return nil
}

func newSessions(n *Node) *sessions {
	return &sessions{
		n:       n,
		byPeer:  map[protocol.ID]*session{},
		origins: origins{c: &n.c, known: map[string]*origin{}},
		dials:   map[protocol.ID]error{},
		ends:    map[protocol.ID]ended{},
		apart:   map[protocol.ID]time.Duration{},
		changed: make(chan struct{}),
		closing: make(chan struct{}),
		watch:   make(chan struct{}, 1),
	}
}

// An ended session is the last one with its member.
type ended struct {
	number, incarnation uint64
	cause               Cause
}

func (ss *sessions) lookup(id protocol.ID) *session {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	return ss.byPeer[id]
}

// list returns the sessions that are not dead, by peer.
func (ss *sessions) list() []*session {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	all := make([]*session, 0, len(ss.byPeer))
	for _, s := range ss.byPeer {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	return all
}

// register makes s the session with its peer, and tells the loops. ss.mu is held.
func (ss *sessions) register(s *session) {
	ss.n.counters.began.Add(1)
	ss.byPeer[s.id] = s
	ss.origins.come(s)
	ss.n.post(func(l *loop) { l.open(s, ss.n.roles.restores(s.id)) })
}

// change wakes those who wait for sessions or connections. ss.mu is held.
func (ss *sessions) change() {
	close(ss.changed)
	ss.changed = make(chan struct{})
}

// tell is change for who does not hold ss.mu.
func (ss *sessions) tell() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.change()
}

// anew has the dialers begin once more, of whom nothing is known.
func (ss *sessions) anew() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	clear(ss.dials)
	ss.change()
}

// refusing reports whether the last attempts to reach so many members have failed that the others are no quorum.
func (ss *sessions) refusing() bool {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	return len(ss.dials) > ss.n.c.System.N-ss.n.pacer.quorum
}

// end ends a session: the loops hear of it before anything else, and no message
// of it is delivered from now on. last are the last items on the connection, if any.
func (ss *sessions) end(s *session, why error, last []byte) {
	ss.mu.Lock()
	s.mu.Lock()
	// Nobody is suspected by a frozen member; or it was renewed since somebody looked.
	if s.gone || why == errLapsed && (ss.frozen || !s.lease.Lapsed(ss.n.c.Boot())) {
		s.mu.Unlock()
		ss.mu.Unlock()
		return
	}
	s.gone = true
	number, life, label := s.number, s.incarnation, s.label
	s.cut(why, last)
	s.mu.Unlock()
	if ss.byPeer[s.id] == s {
		delete(ss.byPeer, s.id)
		ss.leased.Store(nil)
		ss.part(s, why)
		if ss.n.roles.isMember(s.id) {
			ss.ends[s.id] = ended{number, life, causeOf(why)}
		}
		ss.origins.goAway(s)
		var next *session
		if ss.n.roles.standing(s.id) {
			// The loops change over in one step: what they send must go into one
			// of the two sessions, so that it arrives or makes its lock fail.
			next = newSession(ss.n, s.id, number+1)
			next.lossy = ss.n.roles.watched()
			ss.byPeer[s.id] = next
		}
		ss.n.postUrgent(func(l *loop) { l.dead(s, next, why.Error()) })
		ss.reunite(ss.n.c.Boot(), 0)
	}
	ss.mu.Unlock()
	ss.n.pacer.admit()
	ss.n.book.later(s.host, "session ended", why, "peer", ss.n.roles.name(s.id), "label", label, "session", number, "reason", why)
}

// drop ends a session for a reason that the peer does not know of. A client may
// count on its lease all the same: nothing passes any more, but this member
// suspects it only when the lease has lapsed or the client begins a new session.
func (ss *sessions) drop(s *session, why error, last []byte) {
	if !ss.n.roles.member() || ss.n.roles.isMember(s.id) {
		ss.end(s, why, last)
		return
	}
	s.mu.Lock()
	s.cut(why, last)
	s.mu.Unlock()
	ss.n.book.later(s.host, "session dropped", why, "peer", ss.n.roles.name(s.id), "reason", why)
}

// usualWindow is how many bytes may wait in a session, but for messages that have parts: more where a client may have many locks,
// of which each may have something to say at once.
func (ss *sessions) usualWindow() int {
	return ss.ofClient(reliable.MaxBytes, bytesOfOne) + len(ss.n.c.Objects)*objectRoom
}

// usualItems is how many messages may wait in a session.
func (ss *sessions) usualItems() int { return ss.ofClient(reliable.MaxItems, itemsOfOne) }

// What may wait for each lock of a client: the request of one user and the release of the one before, an answer to a CHECK and
// one more, with names that are no longer than usual.
const (
	itemsOfOne = 4
	bytesOfOne = 4 * 64
)

// ofClient is least, or what all locks that a client may have make of one's, if that is more.
func (ss *sessions) ofClient(least, one int) int {
	if ss.n.roles.info.Users != protocol.Clients {
		return least
	}
	return max(least, ss.n.c.MaxLocks*one)
}

// Alive returns how many members this node has a live session with, itself not
// counted.
func (n *Node) Alive() (k int) {
	now := n.c.Boot()
	if have := n.sessions.leases(now); have != nil && n.roles.info.Detector != protocol.NoDetector {
		return len(have.numbers)
	}
	for id := range n.roles.members {
		if s := n.sessions.lookup(protocol.ID(id)); s != nil {
			if _, ok := s.up(now); ok {
				k++
			}
		}
	}
	return k
}

// Ended is why a session with a member is over. Where that is not known, because this
// node has not noticed yet, or another one has ended since, the lease lapsed.
func (n *Node) Ended(member protocol.ID, session uint64) Cause {
	ss := n.sessions
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	if e, ok := ss.ends[member]; ok && e.number == session {
		return e.cause
	}
	return CauseLapsed
}

// Sessions returns the live sessions, by peer.
func (n *Node) Sessions() (all []Session) {
	now, wall := n.c.Boot(), time.Now()
	for _, s := range n.sessions.list() {
		end, ok := s.up(now)
		if !ok {
			continue
		}
		s.mu.Lock()
		all = append(all, Session{s.id, s.label, s.incarnation, wall.Add(end - now), s.number})
		s.mu.Unlock()
	}
	return all
}

// Leased reports whether k of these sessions have a lease now, numbers by peer.
func (n *Node) Leased(sessions map[protocol.ID]uint64, k int) bool {
	have := n.sessions.leases(n.c.Boot())
	if have == nil {
		return !n.LeaseEnd(sessions, k).IsZero()
	}
	for id, number := range sessions {
		if have.numbers[id] == number {
			k--
		}
	}
	return k <= 0
}

// LeaseEnd is when fewer than k of these sessions will have a lease, numbers by peer, unless one is renewed before: that of the
// k-th last lease. It is zero if that is so now.
func (n *Node) LeaseEnd(sessions map[protocol.ID]uint64, k int) time.Time {
	const usual = 16
	var memory [usual]time.Duration
	ends := memory[:0]
	now, wall := n.c.Boot(), time.Now()
	for id, number := range sessions {
		s := n.sessions.lookup(id)
		if s == nil {
			continue
		}
		end, ok := s.up(now)
		s.mu.Lock()
		ok = ok && s.number == number
		s.mu.Unlock()
		if ok {
			ends = append(ends, end)
		}
	}
	if k < 1 || k > len(ends) {
		return time.Time{}
	}
	slices.Sort(ends)
	return wall.Add(ends[len(ends)-k] - now)
}

// WaitAlive waits for k live sessions, and returns what stands in the way, by
// member, when ctx ends first: an *UnreachableError that wraps ctx's cause. With one that has ended before it says what is
// known, and has nobody dialed.
func (n *Node) WaitAlive(ctx context.Context, k int) error {
	if ctx.Err() == nil {
		n.demand.want()
		defer n.demand.done()
	}
	err := n.sessions.await(ctx, func() bool { return n.sessions.isClosing() || n.Alive() >= k })
	switch {
	case n.sessions.isClosing():
		return ErrClosed
	case err == nil || err == ErrClosed:
		return err
	}
	return n.sessions.unreachable(k, err)
}

// await waits for what depends on sessions and connections, until ctx or the node ends.
func (ss *sessions) await(ctx context.Context, ready func() bool) error {
	for {
		ss.mu.RLock()
		changed := ss.changed
		ss.mu.RUnlock()
		if ready() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ss.n.ctx.Done():
			return ErrClosed
		}
	}
}

func (ss *sessions) unreachable(k int, cause error) error {
	e := &UnreachableError{Alive: ss.n.Alive(), Want: k, Cause: cause, nouns: ss.n.roles.noun() + "s"}
	now := ss.n.c.Boot()
	for id, p := range ss.n.table.now.Load().Slots {
		id := protocol.ID(id)
		if id == ss.n.c.ID {
			continue
		}
		if s := ss.lookup(id); s != nil {
			if _, ok := s.up(now); ok {
				continue
			}
		}
		e.Members = append(e.Members, MemberError{p, cmp.Or(ss.failure(id), ErrNoAnswer)})
	}
	return e
}

// failure is why there is no connection with a process, nil where one may be about to come.
func (ss *sessions) failure(to protocol.ID) error {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	if err := ss.dials[to]; err != nil || ss.n.roles.dialsTo(to) {
		return err
	}
	return errNotDialed
}

// refused ends a session because the peer says why it wants none.
func (ss *sessions) refused(s *session, why error) {
	ss.n.lives.refused(s.id, why)
	ss.mu.Lock()
	if ss.n.roles.isMember(s.id) {
		ss.dials[s.id] = why
		ss.change()
	}
	ss.mu.Unlock()
	ss.end(s, why, nil)
}

// unreached remembers why a member cannot be reached, and logs what is news.
func (ss *sessions) unreached(id protocol.ID, err error) {
	ss.n.lives.refused(id, err)
	ss.mu.Lock()
	old := ss.dials[id]
	ss.dials[id] = err
	ss.change()
	ss.mu.Unlock()
	if old == nil || old.Error() != err.Error() {
		ss.n.c.Log.Warn("no connection", "peer", ss.n.roles.name(id), "address", ss.n.table.peer(id).Addr, "error", err)
	}
}

// reach returns the connection with a process. One to a member may be about to come: the
// first one, or another one since the slot table was replaced.
func (ss *sessions) reach(ctx context.Context, to protocol.ID) (c *conn, failure error) {
	err := ss.await(ctx, func() bool {
		failure = ss.failure(to)
		if s := ss.lookup(to); s != nil {
			c = s.connection()
		}
		return c != nil || failure != nil
	})
	switch {
	case c != nil:
		return c, nil
	case failure == nil && err != ErrClosed:
		err = &silence{err}
	}
	return nil, cmp.Or(failure, err)
}

func (ss *sessions) isClosing() bool {
	select {
	case <-ss.closing:
		return true
	default:
		return false
	}
}

// moved closes the connection with a member that has another address.
func (ss *sessions) moved(id protocol.ID) {
	if s := ss.lookup(id); s != nil && ss.n.roles.dialsTo(id) {
		if c := s.connection(); c != nil {
			c.close(errMoved)
		}
	}
}

// noteRoundTrip notes how long an answer of the peer of s took, and what that makes of
// the message delay: half of the upper median of the members' round trips, because
// what a process waits for is the answers of a quorum, not those of a slow member.
func (ss *sessions) noteRoundTrip(s *session, took time.Duration) {
	if ss.n.roles.member() || !ss.n.roles.isMember(s.id) {
		return
	}
	s.mu.Lock()
	s.roundTrip = took
	s.pace.tripped(took)
	s.mu.Unlock()
	all := []time.Duration{took}
	for _, other := range ss.list() {
		other.mu.Lock()
		if other != s && other.roundTrip > 0 {
			all = append(all, other.roundTrip)
		}
		other.mu.Unlock()
	}
	ss.n.thrift.changed()
	slices.Sort(all)
	delay := min(all[len(all)/2]/2, maxDelay)
	// In steps of a quarter or more, so that processes agree and little is made anew.
	if old := time.Duration(ss.delay.Load()); delay > old+old/4 || delay < old-old/4 {
		ss.delay.Store(int64(delay))
	}
}

// freeze has leases lapse no more, or again.
func (ss *sessions) freeze(still bool) {
	ss.mu.Lock()
	ss.frozen = still
	ss.leased.Store(nil)
	ss.mu.Unlock()
	ss.look()
}

// shut lets no session begin any more. It reports whether it is the first to do so.
func (ss *sessions) shut() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.isClosing() {
		return false
	}
	close(ss.closing)
	return true
}

// clear forgets all sessions, in which nothing passes any more.
func (ss *sessions) clear() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.byPeer {
		s.dead.Store(true)
	}
	clear(ss.byPeer)
	ss.leased.Store(nil)
}

// stand has a session be there that waits for its first connection.
func (ss *sessions) stand(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.register(s)
}

// connect gives a session that was agreed on a connection, has it be the one with its peer if none is yet, and wakes
// those who wait for that. received is what the peer has received of it. After an error that does not say that the
// node closes the session has ended.
func (ss *sessions) connect(s *session, c *conn, received uint64, isNew bool) error {
	c.s = s
	if err := s.attach(c, received); err != nil {
		ss.end(s, err, nil)
		return err
	}
	dials := ss.n.roles.dialsTo(s.id)
	ss.mu.Lock()
	if ss.isClosing() && !dials {
		ss.mu.Unlock()
		return ErrClosed
	}
	if ss.byPeer[s.id] == nil && !s.dead.Load() {
		ss.register(s)
	}
	delete(ss.dials, s.id)
	ss.leased.Store(nil)
	ss.mu.Unlock()
	ss.n.detector.heard(s, isNew)
	ss.n.thrift.connected()
	ss.tell() // those that wait until it is alive: nobody suspects it any more
	ss.n.pacer.admit()
	ss.look()
	return nil
}

// mayBegin says why no session may begin here from these origins.
func (ss *sessions) mayBegin(from []string) *transport.Refuse {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	return ss.origins.mayBegin(from)
}
