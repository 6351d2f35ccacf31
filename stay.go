package poundlock

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
)

// A state is where a stay is.
type state uint8

const (
	idle    state = iota // a line, which does not try
	trying               // for one who waits, and whoever shares with it
	inside               // told Crit, and somebody has not left; lost or not
	leaving              // Exit is called, Rem follows
	out
)

// alone is what those want who are alone, where users want groups.
const alone = protocol.Groups(protocol.Alone + "alone")

// keeper is what those want who are alone, and keep the lock.
const keeper = protocol.Groups(protocol.Keep + "keeper")

// A stay is one Try at the node and what follows, until Rem. The holds of one group rest on it together, or
// the one that is alone: the node has one user a lock, whose calls come one at a time and must not block. Others of this
// client wait behind it, in the order in which they came. It is in Client.stays from its beginning until the next one begins, or nobody
// is left.
type stay struct {
	*terms        // those of the one whom the Try began for
	name   string // of the lock

	// The time of the request: of one that waits at least this, when Try was called; of the one that was granted this, 0 unknown.
	// Constant once decided.
	request uint64

	// Guarded by Client.mu.
	token   uint64 // of the entry, or of the grant that came down to a group
	used    uint32 // tokens, from that one on, by those who were alone
	state   state
	closed  bool            // nobody joins any more: somebody waits who does not share, or it is lost, or to be released
	wants   protocol.Groups // of its holds: one group once it is decided, which a downgrade of the only one changes
	holds   holds           // those who have not left. Until it is decided there is one, who answers for the Try
	waiters holds           // whose turn is still to come
	attempt *attempt        // nil once it got in
	kept    *time.Timer     // the end of Mutex.Keep, where nobody is inside; nil: somebody was all the time
	// sessions are the numbers of those with the servers that support this stay. One
	// that has another session with this client since has forgotten it.
	sessions map[protocol.ID]uint64
	// past are the last ones of these with servers that supported this stay, and do no more; nil: all do.
	past map[protocol.ID]uint64
}

// shard is the one that serves the lock.
func (s *stay) shard() *shard { return s.client.shardOf(s.name) }

// An attempt is what a stay has until it is decided, and after it if it did not get in.
type attempt struct {
	decided chan struct{} // closed by the first of Crit and Rem
	once    bool          // the Try does not wait
	gaveUp  error         // why the process did, nil where it was told to
}

// try calls Try. Client.mu is held, so that no Cancel comes before it. The node calls Label and HeadStart within it, which must not lock it.
func (s *stay) try() {
	s.state, s.request = trying, uint64(time.Now().UnixNano())
	if err := s.shard().node.Try(node.Mutex, s.name, s, s.attempt.once); err != nil {
		s.rem(err)
	}
}

// Wants implements node.Sharer.
func (s *stay) Wants() protocol.Groups {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.wants == "" && s.shard().info.Grouped {
		return alone
	}
	return s.wants
}

// HeadStart implements node.Early.
func (s *stay) HeadStart() time.Duration { return s.ahead }

// Wanted implements node.Sharer: who comes from now on waits behind whoever that is.
func (s *stay) Wanted() {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.closed = true
	s.exit()
}

// isKept reports whether the client has the lock, and nobody is inside. Client.mu is held, as for all that follow.
func (s *stay) isKept() bool { return s.state == inside && s.holds.empty() }

// keeps reports whether the client keeps the lock now that h has left.
func (s *stay) keeps(h *hold) bool {
	return s.state == inside && h.section.keep > 0 && !s.closed && h.lost == nil && uint64(s.used) < s.tokens()
}

// expire gives the lock up if it is kept.
func (s *stay) expire() {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.exit()
}

// exit tells the process to leave, unless somebody is inside.
func (s *stay) exit() {
	if s.isKept() {
		s.stop()
		s.state = leaving
		s.shard().node.Exit(s.name)
	}
}

// stop ends the timer of a lock that was kept.
func (s *stay) stop() {
	if s.kept != nil {
		s.kept.Stop()
	}
}

// tokens is how many the stay has, from token on. Those who share have the same one.
func (s *stay) tokens() uint64 {
	if s.wants == keeper {
		return protocol.KeptTokens
	}
	return 1
}

// nextToken is that of the next grant.
func (s *stay) nextToken() uint64 {
	if s.wants != keeper {
		return s.token
	}
	s.used++
	return s.token + uint64(s.used) - 1
}

// Label implements node.Labelled: that of the one whom the Try began for.
func (s *stay) Label() string { return s.label }

// Crit implements node.User. All who wait for the group come in, as at a server at which a session begins.
func (s *stay) Crit(e node.Entry) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.state, s.token, s.request = inside, e.Token, e.Request
	if s.wants.Len() > 1 {
		s.wants = protocol.Groups(e.Group)
	}
	s.supported(e.Sessions)
	if e.Request != 0 && s.token+s.tokens()-1 > e.Request { // else the last token is the time of the request
		s.client.counters.slowTokens.Add(1)
	}
	for h := range s.holds.all() {
		h.enters()
	}
	s.admit(true)
	close(s.attempt.decided)
	s.attempt = nil
	s.exit() // should all have given up
}

// closed is what the decision of all that got in is, so that none of them keeps a channel of its own.
var closed = make(chan struct{})

func init() { close(closed) }

// decision is closed when Crit or Rem has come.
func (s *stay) decision() <-chan struct{} {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.attempt == nil {
		return closed
	}
	return s.attempt.decided
}

// Supported implements node.User.
func (s *stay) Supported(sessions map[protocol.ID]uint64) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.supported(sessions)
}

// supported notes who supports s now. Client.mu is held.
func (s *stay) supported(sessions map[protocol.ID]uint64) {
	for id, number := range s.sessions {
		if _, still := sessions[id]; !still {
			if s.past == nil {
				s.past = map[protocol.ID]uint64{}
			}
			s.past[id] = number
		}
	}
	s.sessions = sessions
}

// Ejected implements node.User. The stay lasts until the last Unlock: whoever is still
// inside must not meet the next local user there.
func (s *stay) Ejected() {
	why := s.departed()
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.lose(why)
	for h := range s.holds.all() {
		h.section.revoked = false // should it have been: now it is lost in truth
	}
	s.exit()
}

// Rem implements node.User. A node that closes or fails says it unasked.
func (s *stay) Rem(why error) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.rem(why)
}

// rem is Rem where Client.mu is held.
func (s *stay) rem(why error) {
	switch s.state {
	case trying:
		s.attempt.gaveUp = why
		close(s.attempt.decided)
	case inside:
		s.lose(why)
	}
	s.state = out
	s.end()
}

// end lets the next ones come once both the process and all users are out. A user that
// gives up is out only when it has called Cancel, which must not meet the next
// stay's Try. Client.mu is held.
func (s *stay) end() {
	if s.state == out && s.holds.empty() {
		s.pass()
	}
}

// lose ends the contexts of all users that are inside. why is nil where no more is known.
// Client.mu is held.
func (s *stay) lose(why error) {
	s.closed = true
	for h := range s.holds.all() {
		h.lose(why)
	}
}

// enter returns nil when the decision was Crit and h is inside, and else why it is not.
func (s *stay) enter(h *hold) error {
	expired := s.expired()
	var why error
	if expired {
		why = s.departed()
	}
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.state == inside && expired {
		s.lose(why)
	}
	switch {
	case s.client.closed():
		return ErrClosed
	case h.lost != nil:
		return h.lost
	case s.state != out:
		return nil
	}
	switch why := s.gaveUp(); why {
	case nil:
	case protocol.TooFew, protocol.NoMajority:
		return &failure{kind: s.shard().lack, why: why}
	default:
		return why
	}
	return errors.New("somebody else holds or wants it")
}

// gaveUp is why the process did, nil where it was told to, or did not. Client.mu is held.
func (s *stay) gaveUp() error {
	if s.attempt == nil {
		return nil
	}
	return s.attempt.gaveUp
}

// tooFew is err, with which the wait for s ended, or ErrNoQuorum where more time would
// have been of no use: servers that drain can be reached, and give nothing. Client.mu is held.
func (s *stay) tooFew(err error) error {
	over := err == errPatience || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if why := s.gaveUp(); over && why == protocol.TooFew {
		if f, ok := err.(*failure); ok { // of no quorum, as this is
			err = f.why
		}
		return &failure{kind: s.shard().lack, why: after(err, why)}
	}
	return err
}

// expired reports whether nobody can be inside any more: fewer servers may
// support it than keep the others from being a quorum. Its process need not have
// been told yet, for this machine may have been stopped until a moment ago.
func (s *stay) expired() bool {
	return s.shard().needed > 0 && !s.shard().node.Leased(s.supports(), s.shard().needed)
}

// departed says which of the servers that ever supported the stay have ended their sessions
// since, and how: nil if none has.
func (s *stay) departed() error {
	g := s.shard()
	live := map[protocol.ID]uint64{}
	for _, sess := range g.node.Sessions() {
		live[sess.Peer] = sess.Number
	}
	past := map[protocol.ID]uint64{}
	s.client.mu.Lock()
	maps.Copy(past, s.past)
	maps.Copy(past, s.sessions)
	s.client.mu.Unlock()
	gone := map[node.Cause][]string{}
	for id, number := range past {
		if live[id] == number {
			continue
		}
		cause := g.node.Ended(id, number)
		gone[cause] = append(gone[cause], g.Servers[id].Name)
	}
	if why := departed(gone); why != nil {
		return why
	}
	if f, ok := errors.AsType[*node.FailedError](g.node.Failure(s.name)); ok {
		return errors.New(f.Why)
	}
	return nil
}

// unleased is for how long what counts on no lease is said to be held at least.
const unleased = time.Hour

// leaseEnd is when too few leases are left, unless servers are heard from; zero: it is so already.
func (s *stay) leaseEnd() time.Time {
	if s.shard().needed == 0 {
		return time.Now().Add(unleased)
	}
	return s.lastLease()
}

// lastLease is the end of the last lease that counts. Users stay inside while n-m+1 servers support them, so that it is the
// latest but n-m; zero: too few are left.
func (s *stay) lastLease() time.Time {
	return s.shard().node.LeaseEnd(s.supports(), s.shard().needed)
}

// supports are the sessions with those that support it.
func (s *stay) supports() map[protocol.ID]uint64 {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	return s.sessions
}
