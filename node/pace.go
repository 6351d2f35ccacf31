package node

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// # What a client asks of servers that cannot follow
//
// A client that sends whatever its users want fills the way to a server that cannot follow: heartbeats come late behind
// requests, so that what it holds is lost because it wants more, and the server works on requests whose users have given up.
// So a client has only so many messages on their way to a server, as few as it takes to keep that busy: more where they
// are acknowledged at once, half as many where that takes longer than it did before. What users want beyond waits here,
// where it costs little and can be taken back. Releases and answers never wait.

const (
	firstPace = 256                    // messages on their way to a server, at first
	leastPace = 16                     // and at least
	mostPace  = 1 << 14                // and at most
	paceStep  = 8                      // more, each time that they came through at once
	rateTime  = 250 * time.Millisecond // over which the rate is measured at least
	gap       = time.Second            // a load has ended when nobody has waited for longer, or for longer than it stood
)

// A pace is how many messages a client may have on their way to one server: session.mu guards it.
type pace struct {
	most   int           // 0: firstPace
	full   bool          // as many were wanted
	slowed bool          // there have been too many before
	least  time.Duration // that an answer ever took; 0: unknown
	timed  uint64        // the message that is timed; 0: none
	sent   time.Time     // when it was sent
}

// note notes a message that is sent behind so many: one at a time is timed, of those that have half of what may be before them.
func (p *pace) note(seq uint64, behind int) {
	if p.timed == 0 && behind >= p.limit()/2 {
		p.timed, p.sent = seq, time.Now()
	}
}

// tripped notes how long an answer took.
func (p *pace) tripped(took time.Duration) {
	if took = max(took, 1); p.least == 0 || took < p.least {
		p.least = took
	}
}

// heard notes that all messages up to one are acknowledged. late is how much longer than ever that may take.
func (p *pace) heard(acked uint64, late time.Duration) {
	if p.timed == 0 || acked < p.timed {
		return
	}
	took := time.Since(p.sent)
	p.timed = 0
	p.tripped(took)
	most := p.limit()
	switch {
	case took > p.least+late:
		p.slowed = true
		most = max(leastPace, most/2)
	case !p.full:
	case p.slowed:
		most += paceStep
	default:
		most *= 2
	}
	p.most, p.full = min(most, mostPace), false
}

// limit is how many messages may be on their way.
func (p *pace) limit() int {
	if p.most == 0 {
		return firstPace
	}
	return p.most
}

// room is how many more messages should go to the peer now.
func (s *session) room() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := s.pace.limit() - s.window.Unacked()
	s.pace.full = s.pace.full || room <= 0
	return room
}

// late is how much longer than ever an acknowledgement may take that is not too late: it may be put off, as conn.acknowledge says, and processes wait
// for processors. What heartbeats wait behind must be a small part of a lease.
func (n *Node) late() time.Duration {
	return 2*ackDelay + max(n.c.Lease/40, min(50*time.Millisecond, n.c.Lease/8))
}

// A pacer keeps the Tries of a client's users that servers cannot take yet.
type pacer struct {
	n      *Node
	quorum int // of members, whose slowest one counts

	mu     sync.Mutex // taken after that of users, and before that of sessions
	tries  []kept     // by age; some have been taken back
	live   int        // that have not
	posted int        // to the loops, which have not begun them
	turns  int        // of Tries that were let go
	since  time.Time  // when rate was measured, or the first one was kept
	empty  time.Time  // when the last one went that had waited
	let    int        // go since then
	rooms  []int      // scratch

	waiting atomic.Int64 // live
	rate    atomic.Int64 // of Tries that are let go, in a second; 0: unknown
	began   atomic.Int64 // when the load began, after the node's start
}

// A kept Try is one that waits, unless its user does no more.
type kept struct {
	event
	loop *loop
	user *user
}

// A passage is where a Try is, under the pacer's mu.
type passage uint8

const (
	begun    passage = iota // by its loop; or not made yet
	waiting                 // here
	posted                  // to its loop
	returned                // as posted, but its user has taken it back
)

func newPacer(n *Node) *pacer {
	p := &pacer{n: n, quorum: n.c.System.N}
	if info := &n.roles.info; info.Quorum != "" {
		p.quorum = int(info.Option(n.c.System, info.Quorum))
	}
	return p
}

// try posts a Try to its loop, or keeps it while servers cannot take it.
func (p *pacer) try(l *loop, e event, u *user) {
	if p.n.roles.member() {
		l.inbox.post(e)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := kept{e, l, u}
	if p.live == 0 {
		p.since, p.let = time.Now(), 0
		if idle := p.since.Sub(p.empty); idle > gap || idle > p.empty.Sub(p.n.started)-time.Duration(p.began.Load()) {
			p.rate.Store(0)
			p.began.Store(int64(p.since.Sub(p.n.started)))
		}
	}
	p.count(1) // before the look at sessions: whoever makes room there from now on waits for mu, and looks here
	if p.live == 1 && p.room() > 0 {
		p.count(-1)
		p.post(k)
		return
	}
	u.passage = waiting
	p.tries = append(p.tries, k)
}

func (p *pacer) post(k kept) {
	k.user.passage = posted
	p.posted++
	k.loop.inbox.post(k.event)
}

// count counts the Tries that are live.
func (p *pacer) count(more int) {
	p.live += more
	p.waiting.Store(int64(p.live))
}

// room is how many more Tries a quorum takes now, or, where fewer members are connected, the slowest of them. Without any all may go: they
// fail, or wait, as they do then.
func (p *pacer) room() int {
	p.rooms = p.rooms[:0]
	ss := p.n.sessions
	ss.mu.RLock()
	for _, s := range ss.byPeer {
		if !s.dead.Load() {
			p.rooms = append(p.rooms, s.room()-p.posted)
		}
	}
	ss.mu.RUnlock()
	if len(p.rooms) == 0 {
		return len(p.tries) + 1
	}
	slices.Sort(p.rooms)
	return p.rooms[max(0, len(p.rooms)-p.quorum)]
}

// begin has a loop begin a Try, and reports whether its user still wants it. begun follows.
func (p *pacer) begin(u *user) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := u.passage != returned
	u.passage = begun
	return wanted
}

// begun notes that a loop has sent what a Try asks for.
func (p *pacer) begun() {
	p.mu.Lock()
	p.posted--
	p.mu.Unlock()
	p.admit()
}

// takeBack takes a Try back that no loop has begun. One that is on its way to its loop is turned away there.
func (p *pacer) takeBack(u *user) (was passage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch was = u.passage; was {
	case waiting:
		u.passage = begun
		if p.count(-1); p.live == 0 {
			p.empty = time.Now()
		}
		if len(p.tries) > 2*p.live+firstPace {
			p.tries = slices.DeleteFunc(p.tries, func(k kept) bool { return k.user.passage != waiting })
		}
	case posted:
		u.passage = returned
	}
	return was
}

// beginTry begins a Try, unless its user has taken it back.
func (l *loop) beginTry(e *event) {
	if l.n.roles.member() {
		l.tryEvent(e)
		return
	}
	if u := l.users.get(e.name); u == nil || l.n.pacer.begin(u) {
		l.tryEvent(e)
	} else {
		l.turnAway(e.name)
	}
	l.n.pacer.begun()
}

// takesBack takes a Try back that has not begun. Its user goes now, or as it would begin.
func (l *loop) takesBack(name string) bool {
	u := l.users.get(name)
	if u == nil {
		return false
	}
	was := l.n.pacer.takeBack(u)
	if was == waiting {
		l.turnAway(name)
	}
	return was != begun
}

// turnAway turns a user away whose Try has not begun. What the user before it has left may be idle only now.
func (l *loop) turnAway(name string) {
	l.gate.turn(name, nil)
	if i := l.instances.Get(name); i != nil {
		l.dropIfIdle(i)
	}
}

// admit lets go as many as there is room for. Whoever came last has the best chance that its user still waits when it is
// granted; but whoever came first must not wait for ever: one of eight is that one.
func (p *pacer) admit() {
	if p.waiting.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for room := p.room(); room > 0 && p.live > 0; room-- {
		k := p.take()
		p.count(-1)
		p.let++
		p.post(k)
	}
	if p.live == 0 {
		p.tries, p.empty = nil, time.Now()
	}
	if took := time.Since(p.since); took >= rateTime {
		rate := int64(float64(p.let) / took.Seconds())
		if before := p.rate.Load(); before > 0 {
			rate = (before + rate) / 2 // they go in bursts
		}
		p.rate.Store(max(1, rate))
		p.since, p.let = p.since.Add(took), 0
	}
}

// take takes out a Try that is live, of which there is one.
func (p *pacer) take() (k kept) {
	first := p.turns%8 == 0
	for p.turns++; k.user == nil || k.user.passage != waiting; {
		last := len(p.tries) - 1
		if first {
			k, p.tries = p.tries[0], p.tries[1:]
		} else {
			k, p.tries = p.tries[last], p.tries[:last]
		}
	}
	return k
}

// A Backlog is what waits until the members can be asked for it.
type Backlog struct {
	Users  int           // that wait
	Wait   time.Duration // how long one more would wait at most, as far as that is known: 0 where nobody waits
	Stands time.Duration // how long the load has stood: some have waited since, but for gaps of up to a second
}

// Backlog is that of the node.
func (n *Node) Backlog() (b Backlog) {
	waiting, rate := n.pacer.waiting.Load(), n.pacer.rate.Load()
	if b.Users = int(waiting); waiting > 0 && rate > 0 {
		b.Wait = time.Duration(float64(waiting) / float64(rate) * float64(time.Second))
		b.Stands = time.Since(n.started) - time.Duration(n.pacer.began.Load())
	}
	return b
}
