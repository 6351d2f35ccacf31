package node

import (
	"sync"
	"time"
)

// # Members that nothing is wanted of
//
// A client of many shards needs few of them at a time, and a session costs both ends something for as long as it lasts. With Config.Idle
// a client dials members when something is wanted of them, and ends the sessions when nothing has been for so long. Wanted is what
// somebody here waits for: every user from Try to Rem, so also one that is inside, each Call, and each WaitAlive.
//
// The sessions end in one step, which nobody who begins to want something can come in between: there is no user here then that could count on
// one, and the next user's dials begin new ones, with larger numbers. By then a release has been acknowledged, for Idle is several leases.
// Were one not, the good-bye would say as much: members forget what the client has left with it.
//
// While fewer members than a quorum can be reached the dials go on: so a client that was told that members are down sees them come back.

// errIdle is that nothing is wanted of the member any more.
var errIdle = &end{"nothing was wanted there for a while", CauseIdle, true}

// Rest says whether a node dials its members now.
type Rest uint8

const (
	// Awake: members are dialed. A quorum has been reached, or too few members answer for one.
	Awake Rest = iota
	// Resting: nothing is wanted, and a quorum was reached when something last was; or it is so until the first dials say more.
	Resting
	// Unused: nothing has been wanted yet, or only just now.
	Unused
)

// A demand is what is wanted of the members. nil: they are dialed always.
type demand struct {
	n     *Node
	after time.Duration // Config.Idle

	mu      sync.Mutex // taken before that of sessions, after none
	wants   int
	since   time.Time // when there was the last want
	timer   *time.Timer
	pending bool // it runs
	rests   bool // no member is dialed, and no session is there
	met     bool // a quorum, since it rested last
	ever    bool
	closed  bool
}

func newDemand(n *Node) *demand {
	if n.c.Idle == 0 {
		return nil
	}
	return &demand{n: n, after: n.c.Idle, rests: true}
}

// want begins a want, before what it is for. done ends it.
func (d *demand) want() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wants++
	if d.rests {
		d.rests, d.met = false, false
		d.n.sessions.anew()
	}
}

func (d *demand) done() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wants--
	d.since = time.Now()
	switch {
	case d.wants > 0 || d.pending:
	case d.timer == nil:
		d.timer, d.pending = time.AfterFunc(d.after, d.rest), true
	default:
		d.pending = true
		d.timer.Reset(d.after)
	}
}

// rest ends all sessions if nothing has been wanted for long enough.
func (d *demand) rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = false
	if d.closed || d.wants > 0 {
		return
	}
	left := d.after - time.Since(d.since)
	if left <= 0 && d.n.Alive() < d.n.pacer.quorum {
		left = d.after
	}
	if left > 0 {
		d.pending = true
		d.timer.Reset(left)
		return
	}
	d.rests = true
	for _, s := range d.n.sessions.list() {
		d.leave(s)
	}
}

// leave ends a session with a good-bye, which Close waits for. mu is held.
func (d *demand) leave(s *session) {
	if c := s.connection(); c != nil {
		d.n.sessions.greeting.Add(1)
		d.n.wg.Go(func() {
			<-c.done
			d.n.sessions.greeting.Add(-1)
		})
	}
	d.n.sessions.end(s, errIdle, goodBye())
}

// connected notes that a session has a connection: one that comes too late ends.
func (d *demand) connected(s *session) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.rests:
		d.leave(s)
	case d.n.Alive() >= d.n.pacer.quorum:
		d.met, d.ever = true, true
	}
}

// isResting reports whether no member is to be dialed.
func (d *demand) isResting() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rests
}

// close has everything stay as it is.
func (d *demand) close() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

// Rest says whether the members are dialed now. They always are without Config.Idle.
func (n *Node) Rest() Rest {
	d := n.demand
	if d == nil {
		return Awake
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !d.rests && (d.met || n.sessions.refusing()):
		return Awake
	case d.ever:
		return Resting
	}
	return Unused
}

// Want has members dialed as if something had been wanted of them for a moment. It does not wait.
func (n *Node) Want() {
	n.demand.want()
	n.demand.done()
}
