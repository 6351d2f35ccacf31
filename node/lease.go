package node

import (
	"errors"
	"math"
	"time"

	"github.com/poundlock/poundlock/protocol"
)

// Limits of Config.Lease.
const (
	MinLease = 20 * time.Millisecond
	MaxLease = 10 * time.Minute
)

// ErrNoAnswer says that a member has not been reached, and that no attempt has failed.
var ErrNoAnswer = errors.New("no answer yet")

// An end is why a session or a handshake is over.
type end struct {
	text     string
	cause    Cause
	ordinary bool // sessions of processes that do nothing wrong end so
}

func (e *end) Error() string { return e.text }

// Why sessions and connections end, or cannot begin.
var (
	errReplaced  = &end{"a newer connection of the session took over", CauseReplaced, false}
	errLapsed    = &end{"the lease lapsed", CauseLapsed, true}
	errBye       = &end{"the peer closed the session", CauseBye, true}
	errRestarted = &end{"the peer restarted and has lost its memory", CauseRestarted, true}
	errForgotten = &end{"the peer does not know the session any more: it has restarted, or ended it", CauseRestarted, true}
	errNewer     = &end{"the peer began a new session", CauseReplaced, true}
	errBroken    = &end{"the connection ended, and the session with it", CauseConnection, true}
	errFailed    = &end{"the process of a lock failed here", CauseLockFailed, false}
	errLost      = errors.New("the session is lost")
	errNotDialed = errors.New("it has not connected to this process")
)

// run ends the sessions whose leases lapse. A client must be on time; a
// member may be late, which only delays a suspicion, and so it looks at its many
// sessions not too often.
func (ss *sessions) run() {
	lease, holds := ss.n.c.Lease, ss.n.roles.holds()
	least, most := min(20*time.Millisecond, lease/10), min(time.Second, lease/4)
	if holds {
		least, most = time.Millisecond, math.MaxInt64
		ss.n.naps.add(ss) // the timer stands still while the machine is suspended
		defer ss.n.naps.remove(ss)
	}
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		now := ss.n.c.Boot()
		next := ss.expire(now)
		if t.Stop(); next < math.MaxInt64 { // else something is there to watch after the next look
			wait := min(most, next-now)
			if early := inStep(now, wait, lease); holds && early > 0 { // mostly it is renewed by then
				wait = early
			}
			t.Reset(max(least, wait))
		}
		select {
		case <-t.C:
		case <-ss.watch:
		case <-ss.n.ctx.Done():
			return
		}
	}
}

func (ss *sessions) look() {
	select {
	case ss.watch <- struct{}{}:
	default:
	}
}

// expire ends the sessions whose leases have lapsed at now, and returns when the
// next one may.
func (ss *sessions) expire(now time.Duration) (next time.Duration) {
	for {
		lapsed, next := ss.lapsed(now)
		if len(lapsed) == 0 {
			return next
		}
		for _, s := range lapsed {
			ss.end(s, errLapsed, nil)
		}
	}
}

// lapsed returns the sessions whose leases have lapsed at now, and when the next
// one ends. Only without any of the former does it set leased, and only while
// no session can begin, so that a loop never passes a lapse that is not dealt
// with.
func (ss *sessions) lapsed(now time.Duration) (over []*session, next time.Duration) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	next = math.MaxInt64
	if ss.frozen {
		return nil, next
	}
	next = ss.reunite(now, next)
	holds, numbers := ss.n.roles.holds(), map[protocol.ID]uint64{}
	for _, s := range ss.byPeer {
		if !ss.n.roles.leased(s.id) {
			continue
		}
		s.mu.Lock()
		known, lapsed, end, number := s.established, s.lease.Lapsed(now), s.lease.End(), s.number
		s.mu.Unlock()
		switch {
		case !known:
		case lapsed:
			over = append(over, s)
		default:
			next = min(next, end)
			if holds && ss.n.roles.isMember(s.id) {
				numbers[s.id] = number
			}
		}
	}
	if len(over) == 0 && holds {
		ss.leased.Store(&leased{next, numbers})
	}
	return over, next
}

// lapse ends lapsed sessions before a loop of a client goes on: after a pause
// of the whole process nobody knows whether the watcher has run yet.
func (ss *sessions) lapse() {
	if now := ss.n.c.Boot(); ss.leases(now) == nil {
		ss.expire(now)
	}
}
