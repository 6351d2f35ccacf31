package node

import (
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/internal/histogram"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
	"github.com/poundlock/poundlock/wrap/reliable"
)

// Stats is what a node has counted since it started, and what there is now.
type Stats struct {
	Messages []MessageStats // of locks, by kind of lock and of message
	Peers    []PeerStats    // the members, by id, but for this one
	Clients  Traffic        // with all clients together

	ClientSessions int               // with clients, now
	SessionsBegan  uint64            // with members and clients
	SessionsEnded  map[string]uint64 // by Cause
	Refused        map[string]uint64 // connections refused or broken off in their handshake, by Cause
	Unacked        int               // bytes of messages that are not acknowledged, of all sessions
	Frames         FrameStats
	Unlogged       uint64 // warnings left out of the log, because one host caused too many

	Loops     []LoopStats
	Instances int // locks that are not idle
	Pairs     int // of a client and a lock that it holds, wants or has just left
	Waiting   int // requests in the queues of a member's locks

	// What a member's locks gave away. A support that goes from one client to the next
	// in one step ends and is given, and counts as passed on too.
	Supports       int // now
	SupportsGiven  uint64
	SupportsEnded  uint64
	SupportsPassed uint64
	SupportsHeld   histogram.Snapshot // how long those lasted that have ended
}

// MessageStats counts the messages of one kind. One that is sent again on a new
// connection counts once.
type MessageStats struct {
	Kind           Kind
	Name           string // as in protocol.Info
	Sent, Received uint64
}

// Traffic counts bytes of frames after the handshake.
type Traffic struct{ BytesSent, BytesReceived uint64 }

// PeerStats is about one member.
type PeerStats struct {
	Name      string
	Connected bool // there is a live session
	Resting   bool // there need not be one: nothing is wanted of the member
	Traffic
	// RoundTrips are the times between a heartbeat and its answer, where this end
	// sends the heartbeats, and LastRoundTrip the last of them, 0: none yet.
	RoundTrips    histogram.Snapshot
	LastRoundTrip time.Duration
}

// LoopStats is what waits for a loop.
type LoopStats struct {
	Queue int // events
	Bytes int // of frames that they keep in memory
}

// A Cause is why a session ended, or a handshake failed, as a label of counters:
// there are few of them.
type Cause uint8

// The causes.
const (
	CauseProtocol   Cause = iota // a peer broke the wire's rules, or is none of ours
	CauseBye                     // the peer closed
	CauseLapsed                  // the lease was over
	CauseRestarted               // the peer restarted and lost its memory
	CauseReplaced                // a newer session of the peer, or connection of it, exists
	CauseMisfit                  // the two ends are configured differently
	CauseOldTable                // an end has an older slot table
	CauseUnknown                 // the session to be resumed is not known here
	CauseFull                    // too many sessions, or connections in their handshake
	CauseTooMany                 // too much is unacknowledged, or too many locks
	CauseLockFailed              // the process of a lock failed here
	CauseRevoked                 // a process revoked the lease
	CauseClosed                  // this node closes
	CauseConnection              // its connection ended, and the session with it
	CauseIdle                    // nothing was wanted of the peer
	causes                       // how many there are
)

var causeNames = [causes]string{
	CauseProtocol: "protocol", CauseBye: "bye", CauseLapsed: "lapsed", CauseRestarted: "restarted",
	CauseReplaced: "replaced", CauseMisfit: "misfit", CauseOldTable: "old_table", CauseUnknown: "unknown_session", CauseFull: "full",
	CauseTooMany: "too_many", CauseLockFailed: "lock_failed", CauseRevoked: "revoked", CauseClosed: "closed",
	CauseConnection: "connection", CauseIdle: "idle",
}

func (c Cause) String() string { return causeNames[c] }

// causeOf sorts the errors of sessions and handshakes.
func causeOf(err error) Cause {
	var r transport.Refuse
	var e *end
	switch {
	case errors.As(err, &r):
		switch r.Code {
		case transport.UnknownSession:
			return CauseUnknown
		case transport.Stale:
			return CauseReplaced
		case transport.Full:
			return CauseFull
		case transport.OldTable:
			return CauseOldTable
		}
		return CauseMisfit
	case errors.As(err, &e):
		return e.cause
	case errors.Is(err, reliable.ErrFull):
		return CauseTooMany
	}
	return CauseProtocol
}

// nameMessages gives each kind of message its place in a tally.
func (n *Node) nameMessages() {
	for _, k := range slices.Sorted(maps.Keys(n.c.Hosts)) {
		n.firstMessage[k] = len(n.messages)
		for _, m := range n.c.Hosts[k].Info().Messages {
			n.messages = append(n.messages, MessageStats{Kind: k, Name: m.Name})
		}
	}
}

// counters are what goroutines of connections and sessions count.
type counters struct {
	began   atomic.Uint64
	ended   [causes]atomic.Uint64
	refused [causes]atomic.Uint64
	frames  struct{ slow, noRoom, tooLarge atomic.Uint64 }
	peers   []peerCounters // by id of the member; one more for all clients
}

type peerCounters struct {
	sent, received atomic.Uint64 // bytes
	roundTrips     histogram.Histogram
	lastRoundTrip  atomic.Int64 // ns
}

func byCause(counts *[causes]atomic.Uint64) map[string]uint64 {
	all := make(map[string]uint64, causes)
	for c := range counts {
		all[Cause(c).String()] = counts[c].Load()
	}
	return all
}

// with are the counters of what passes between this node and a peer.
func (c *counters) with(id protocol.ID) *peerCounters {
	return &c.peers[min(id, protocol.ID(len(c.peers)-1))]
}

func (p *peerCounters) answered(after time.Duration) {
	p.roundTrips.Add(after)
	p.lastRoundTrip.Store(int64(after))
}

// A tally is what a loop counts. Only the loop touches it.
type tally struct {
	sent, received       []uint64 // by place in Node.messages
	instances, waiting   int
	supports             int
	given, ended, passed uint64
	held                 histogram.Snapshot // in copies
}

// copyTally makes what the loop has counted so far known to others.
func (l *loop) copyTally() {
	a := &l.audit
	t := a.tally
	t.sent, t.received = slices.Clone(t.sent), slices.Clone(t.received)
	t.instances, t.held = l.instances.Len(), a.held.Snapshot()
	a.latest.Store(&t)
}

// Stats returns what the node has counted. It asks each loop, which answers when
// it has dealt with what was queued before; its cost does not depend on how many
// locks there are.
func (n *Node) Stats() Stats {
	st := Stats{
		SessionsBegan: n.counters.began.Load(),
		SessionsEnded: byCause(&n.counters.ended),
		Refused:       byCause(&n.counters.refused),
		Pairs:         n.sessions.origins.count(),
		Unlogged:      n.book.missing.Load(),
		Frames: FrameStats{
			Unfinished: n.frames.Size(), Slow: n.counters.frames.slow.Load(),
			NoRoom: n.counters.frames.noRoom.Load(), TooLarge: n.counters.frames.tooLarge.Load(),
		},
	}
	st.Messages = append(st.Messages, n.messages...)
	for _, l := range n.loops {
		st.Loops = append(st.Loops, l.inbox.size())
	}
	n.each((*loop).copyTally)
	for _, l := range n.loops {
		st.add(l.audit.latest.Load())
	}
	n.sessionStats(&st)
	return st
}

func (st *Stats) add(t *tally) {
	for k := range st.Messages {
		st.Messages[k].Sent += t.sent[k]
		st.Messages[k].Received += t.received[k]
	}
	st.Instances += t.instances
	st.Waiting += t.waiting
	st.Supports += t.supports
	st.SupportsGiven += t.given
	st.SupportsEnded += t.ended
	st.SupportsPassed += t.passed
	st.SupportsHeld.Merge(t.held)
}

// sessionStats fills in what is about peers.
func (n *Node) sessionStats(st *Stats) {
	up := map[protocol.ID]bool{}
	now := n.c.Boot()
	for _, s := range n.sessions.list() {
		_, ok := s.up(now)
		s.mu.Lock()
		st.Unacked += s.window.UnackedBytes()
		s.mu.Unlock()
		switch {
		case !ok:
		case n.roles.isMember(s.id):
			up[s.id] = true
		default:
			st.ClientSessions++
		}
	}
	rest := n.Rest()
	for k := range n.counters.peers {
		id, c := protocol.ID(k), &n.counters.peers[k]
		t := Traffic{BytesSent: c.sent.Load(), BytesReceived: c.received.Load()}
		switch {
		case !n.roles.isMember(id):
			st.Clients = t
		case id != n.c.ID:
			st.Peers = append(st.Peers, PeerStats{
				Name: n.roles.name(id), Connected: up[id], Resting: !up[id] && rest != Awake, Traffic: t,
				RoundTrips: c.roundTrips.Snapshot(), LastRoundTrip: time.Duration(c.lastRoundTrip.Load()),
			})
		}
	}
}

// PeerStats is the part of Stats about the members. It waits for no loop.
func (n *Node) PeerStats() []PeerStats {
	var st Stats
	n.sessionStats(&st)
	return st.Peers
}
