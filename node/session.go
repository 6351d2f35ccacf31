package node

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/node/lease"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
	"github.com/poundlock/poundlock/wrap/reliable"
)

// A session is what one life of this node shares with one life of a peer. Its states are
//
//	new      until agree: one that stands waits so for its first connection
//	agreed   established: connections come (connect) and go (detach), messages wait in between
//	dropped  dead, by drop: nothing passes any more, but a client may still count on its lease
//	ended    dead and gone, by end: the loops have been told, and nothing knows it any more
//
// Each may be skipped, and none comes back.
type session struct {
	n        *Node
	id       protocol.ID // the peer
	host     string      // where the peer connected from first; "" where this end dials, or it is not known
	from     []string    // names of its origins; none of a member
	origins  []*origin   // these, once it has begun
	pairs    int         // locks that the client holds or wants; under origins.mu
	dead     atomic.Bool // nothing passes any more; set with mu held
	gone     bool        // the loops have been told; under sessions.mu
	signaled atomic.Bool // some loop will wake the writer at the end of its batch
	receive  sync.Mutex  // one reader delivers at a time; taken before mu
	partial  []byte      // the parts of a message that has not ended; under receive
	uses     []uses      // by loop, each of which has its own

	mu          sync.Mutex // the last to be taken
	number      uint64     // counts the sessions of the dialing end with the other one
	incarnation uint64     // of the peer, 0 until established
	established bool       // the two ends have agreed
	lossy       bool       // nothing waits in it before that
	open        bool       // the loop of a durable member has been told that
	settled     uint64     // the last message of the peer that is in the journal
	restored    bool       // it comes from the journal, and has had no connection yet: it has no bounds
	parted      bool       // this node closes, and will say nothing more
	label       string     // of the peer
	window      reliable.Window
	pace        pace
	unacked     int           // bytes of it that sessions.unacked knows of
	large       int           // bytes of it that do not count there: of messages with parts, until the last one is acknowledged
	largeEnd    uint64        // the last item of these
	conn        *conn         // nil while there is none
	lease       lease.Lease   // that this end holds, or, at a member and of a client, grants
	granted     lease.Lease   // to the peer, where each of the two holds one
	roundTrip   time.Duration // at a client: the last one, 0 if unknown
}

func newSession(n *Node, id protocol.ID, number uint64) *session {
	return &session{n: n, id: id, number: number, uses: make([]uses, len(n.loops)), window: reliable.Window{MaxItems: n.sessions.usualItems(), MaxBytes: n.sessions.usualWindow()}}
}

// agree notes what the two ends of a session have agreed on, at this time for the first time or once more: the life and
// the label of the peer, and a lease of a length that is held or granted from an instant. It reports whether the session is
// new. s.mu is held.
func (s *session) agree(life uint64, label string, length, from time.Duration) (isNew bool) {
	isNew = !s.established
	s.incarnation, s.established, s.label = life, true, label
	s.grant(length, from)
	return isNew
}

// grant has the lease of the session, or both leases, count from an instant. s.mu is held.
func (s *session) grant(length, from time.Duration) {
	held := lease.Terms{Length: length, Drift: s.n.c.ClockDrift, Margin: lease.Margin(length)}.Held()
	switch r := &s.n.roles; {
	case r.mutual():
		s.granted.Length = length
		s.granted.Renew(s.n.c.Boot())
		fallthrough
	case !r.member():
		s.lease.Length = held
	default:
		s.lease.Length = length
	}
	s.lease.Renew(from)
}

// cut takes the connection from a session, for good. last are the last items on it: with none it is closed. s.mu is held.
func (s *session) cut(why error, last []byte) {
	if !s.dead.Swap(true) {
		s.n.counters.ended[causeOf(why)].Add(1)
	}
	switch {
	case s.conn == nil:
	case last != nil:
		s.conn.finish(last, why) // before its reader can find the session gone
	default:
		s.conn.close(why)
	}
	s.conn, s.window = nil, reliable.Window{}
	s.n.lives.away(s.id, s.incarnation)
	s.count()
}

// attach gives the session a new connection on which the peer has received every
// message up to received. It fails when the session is dead or when the numbers
// make no sense.
func (s *session) attach(c *conn, received uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead.Load() {
		return errLost
	}
	if err := s.window.Restart(received); err != nil {
		if s.n.c.Journal != nil && received > s.window.Acked() {
			s.n.post(func(l *loop) { l.journal.fail(errOldJournal) })
		}
		return err
	}
	s.bound()
	s.count()
	if s.conn != nil {
		s.conn.close(errReplaced)
	}
	s.conn = c
	return nil
}

// detach takes a connection that broke from the session, which goes on, and reports whether that had no other one. A good-bye
// that the peer has not heard is still to be said.
func (s *session) detach(c *conn) (current bool) {
	c.mu.Lock()
	heard := c.heard
	c.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		return false
	}
	s.conn = nil
	s.parted = s.parted && heard
	s.n.lives.away(s.id, s.incarnation)
	s.n.thrift.changed()
	return true
}

// send appends a message, with the state of an object or without, or a refusal of a name, to the window. The writer is woken
// by signal.
func (s *session) send(t transport.Type, kind Kind, name string, msg []byte, state bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead.Load() || s.lossy && !s.begun() {
		return nil // what is sent to a dead session is lost, as it may be
	}
	if !s.restored && s.unacked > fairUnacked && s.n.sessions.unacked.Load() > s.n.c.MaxUnacked && s.n.roles.member() {
		return fmt.Errorf("%w: %d bytes, and %d by all sessions", reliable.ErrFull, s.unacked, s.n.sessions.unacked.Load())
	}
	s.makeRoom(len(msg), state)
	var err error
	for len(msg) > partSize && err == nil {
		part := binary.AppendUvarint(make([]byte, 0, partSize+binary.MaxVarintLen64), uint64(len(msg)-partSize))
		err = s.append(transport.PartItem, kind, name, append(part, msg[:partSize]...))
		msg = msg[partSize:]
	}
	if err == nil {
		err = s.append(t, kind, name, msg)
	}
	s.count()
	return err
}

// sendLater appends a message that goes with the next frame, soon, or with the next connection. It does not where there is no room.
func (s *session) sendLater(kind Kind, name string, msg []byte) bool {
	if s.send(transport.MessageItem, kind, name, msg, false) != nil {
		return false
	}
	if c := s.connection(); c != nil { // one that comes later sends what is there
		c.oweAck(1)
	}
	return true
}

func (s *session) append(t transport.Type, kind Kind, name string, body []byte) error {
	seq, b := s.window.Next()
	s.pace.note(seq, s.window.Unacked())
	return s.window.Push(transport.AppendNamed(b, t, seq, uint8(kind), name, body))
}

// partSize is how many bytes a message may have that goes as one. Those of replicas may be larger, and go in parts.
const partSize = 256 << 10

// objectRoom is how many bytes more may wait in a session for each object of this member: a few of its
// messages with operations of any size. For when a member comes or goes the epochs of all objects end at once, each
// with votes and proposals that carry operations, and a session that is dropped begins all of that anew.
const objectRoom = 4 * MaxOperation

// makeRoom widens the window for a message that has parts, until that is acknowledged: for a state, which was asked
// for, up to one of each object; for others as long as no more waits than is usual. s.mu is held.
func (s *session) makeRoom(size int, state bool) {
	if size <= partSize || s.restored {
		return
	}
	waits, usual := s.window.UnackedBytes(), s.n.sessions.usualWindow()
	large := min(s.large, waits) + size + (size/partSize+1)*2*transport.MaxName
	if waits <= usual || state && large <= len(s.n.c.Objects)*s.n.maxMessage() {
		s.large, s.window.MaxBytes = large, large+usual
		s.largeEnd = s.window.Acked() + uint64(s.window.Unacked()+(size+partSize-1)/partSize)
	}
}

// fairUnacked is how many bytes a session may always have unacknowledged.
const fairUnacked = 64 << 10

// count tells the node how much is unacknowledged now. s.mu is held.
func (s *session) count() {
	if s.large > 0 && s.window.Acked() >= s.largeEnd {
		s.large, s.window.MaxBytes = 0, s.n.sessions.usualWindow()
	}
	now := max(0, s.window.UnackedBytes()-s.large)
	if now != s.unacked {
		s.n.sessions.unacked.Add(int64(now - s.unacked))
		s.unacked = now
	}
}

// begun reports whether the two ends have agreed: as far as the loop knows where that counts. s.mu is held.
func (s *session) begun() bool { return s.established && (s.open || s.n.c.Journal == nil) }

// received is the last message that the peer may forget. s.mu is held.
func (s *session) received() uint64 {
	if s.n.c.Journal != nil {
		return s.settled
	}
	return s.window.Received()
}

// unbound lifts the bounds of a session that comes from the journal: how much of it the peer has got is known when that
// connects. s.mu is held.
func (s *session) unbound() {
	s.restored, s.window.MaxItems, s.window.MaxBytes = true, math.MaxInt, math.MaxInt
}

// bound takes that back, but for what waits now. s.mu is held.
func (s *session) bound() {
	if !s.restored {
		return
	}
	s.restored = false
	s.large, s.largeEnd = s.window.UnackedBytes(), s.window.Acked()+uint64(s.window.Unacked())
	s.window.MaxItems, s.window.MaxBytes = s.n.sessions.usualItems(), s.large+s.n.sessions.usualWindow()
}

// signal has what waits written: by this goroutine as far as that takes no waiting, if now is set, and else by the writer.
func (s *session) signal(now bool) {
	s.signaled.Store(false)
	switch c := s.connection(); {
	case c == nil:
	case now:
		c.writeNow()
	default:
		c.signal()
	}
}

// life is the incarnation of the peer.
func (s *session) life() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.incarnation
}

func (s *session) connection() *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

// pending reports whether a connected peer has yet to acknowledge something.
func (s *session) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != nil && s.window.Unacked() > 0
}

// up reports whether the session is alive as far as this node knows at now, and
// until when.
func (s *session) up(now time.Duration) (end time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.established || s.dead.Load() {
		return 0, false
	}
	if !s.n.roles.leased(s.id) {
		return now + s.n.c.Lease, s.conn != nil
	}
	return s.lease.End(), !s.lease.Lapsed(now)
}

// A Session is what a node knows about one connected process.
type Session struct {
	Peer        protocol.ID
	Label       string
	Incarnation uint64 // the life of a member; of a client its secret, which is for nobody else
	LeaseEnd    time.Time
	Number      uint64 // another one says that the lease was interrupted
}

// An UnreachableError says which members a node has no session with, and why.
type UnreachableError struct {
	Alive, Want int
	Members     []MemberError
	Cause       error // the context's
	nouns       string
}

// A MemberError is what stands in the way of one session.
type MemberError struct {
	Peer Peer
	Err  error
}

func (e *UnreachableError) Error() string {
	var reasons []string
	members := map[string][]string{} // those with one reason
	for _, m := range e.Members {
		why := reason(m.Err)
		if members[why] == nil {
			reasons = append(reasons, why)
		}
		members[why] = append(members[why], fmt.Sprintf("%s (%s)", m.Peer.Name, m.Peer.Addr))
	}
	for i, why := range reasons {
		reasons[i] = strings.Join(members[why], ", ") + ": " + why
	}
	text := fmt.Sprintf("%d of %d %s reachable, %d wanted", e.Alive, e.Alive+len(e.Members), cmp.Or(e.nouns, "servers"), e.Want)
	if len(reasons) == 0 {
		return text
	}
	return text + ": " + strings.Join(reasons, "; ")
}

// reason is the text of an error about one member without addresses and the names of system
// calls: the address stands beside the member's name, and equal reasons are equal texts.
func reason(err error) string {
	e, ok := err.(*net.OpError)
	if !ok || e.Err == nil || !slices.Contains([]string{"dial", "read", "write"}, e.Op) {
		return err.Error()
	}
	var call *os.SyscallError
	switch {
	case errors.Is(e.Err, os.ErrDeadlineExceeded):
		return "no answer in time"
	case errors.As(e.Err, &call):
		return call.Err.Error()
	}
	return e.Err.Error()
}

// A silence is that a member has not answered before the caller's time was over.
type silence struct{ over error }

func (e *silence) Error() string {
	if errors.Is(e.over, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return "no answer: " + e.over.Error()
}

func (e *silence) Unwrap() []error { return []error{ErrNoAnswer, e.over} }

// A connectionError is why a member cannot be asked.
type connectionError struct{ why error }

func (e *connectionError) Error() string { return "no connection: " + reason(e.why) }
func (e *connectionError) Unwrap() error { return e.why }

func (e *UnreachableError) Unwrap() error { return e.Cause }
