package node

import (
	"sync"

	"github.com/poundlock/poundlock/protocol"
)

// An op says what an event asks of a shard.
type op uint8

const (
	opOpen op = iota // sess is the session with its peer
	opDead           // sess has ended
	opTry
	opCancel
	opIssue // msg is the operation
	opExit
	opTooLarge // a message of size bytes for the lock name would arrive in sess
	opSuspect  // the member peer
	opTrust    // the peer of sess, which is heard of
	opNames
	opLocks
	opHeld // once: at most one
	opDrain
	opPark  // stands still in park
	opHeard // answers once all that was urgent before is dealt with
	opTally // answers once what was counted so far can be read
	opClose
)

type event struct {
	op    op
	once  bool // opTry, opHeld
	sess  *session
	next  *session // opDead: takes over where there is always a session
	peer  protocol.ID
	size  uint64 // opTooLarge
	msg   []byte // opIssue
	text  string // name of the lock; opDead: the reason
	page  *Page  // opNames, opLocks
	locks chan<- []Lock
	park  func()
}

// An inbox is what waits for a shard: events and, in a line, turns of sessions. Anybody puts something in, and the
// shard takes it out.
type inbox struct {
	wake chan struct{} // has an element when there is something

	mu     sync.Mutex
	urgent []event // before the queue
	queue  []event
	line   []*turn            // the first one comes next
	turns  map[*session]*turn // those in line
	spare  []*turn
	closed bool
}

func newInbox() inbox {
	return inbox{wake: make(chan struct{}, 1), turns: map[*session]*turn{}}
}

// post queues an event and never waits, so that users may call it from their
// callbacks. It reports false when the shard is closed. What is posted is
// bounded by the numbers of users and of sessions.
func (in *inbox) post(e event) bool {
	in.mu.Lock()
	if !in.closed {
		in.queue = append(in.queue, e)
	}
	ok := !in.closed
	in.mu.Unlock()
	in.signal()
	return ok
}

// hurry queues an event before all others that are not urgent.
func (in *inbox) hurry(e event) {
	in.mu.Lock()
	in.urgent = append(in.urgent, e)
	in.mu.Unlock()
	in.signal()
}

func (in *inbox) signal() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// take takes out all events, and a round of messages. It keeps the memory that it is given.
func (in *inbox) take(urgent, queue []event, messages []message) ([]event, []event, []message) {
	in.mu.Lock()
	defer in.mu.Unlock()
	urgent, in.urgent = in.urgent, urgent[:0]
	queue, in.queue = in.queue, queue[:0]
	return urgent, queue, in.takeTurns(messages[:0])
}

// settled reports whether only events that are not urgent wait.
func (in *inbox) settled() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.urgent)+len(in.line) == 0
}

// size is how much waits.
func (in *inbox) size() (s ShardStats) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s.Queue = len(in.urgent) + len(in.queue)
	for _, t := range in.line {
		s.Queue += len(t.messages)
		s.Bytes += t.size
	}
	return s
}

// close lets everybody go who waits, for what is in the queue and for rest.
func (in *inbox) close(rest []event) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	for _, e := range append(rest, in.queue...) {
		switch {
		case e.locks != nil:
			e.locks <- nil
		case e.park != nil:
			e.park()
		}
	}
	for _, t := range in.line {
		in.taken(t)
	}
	in.urgent, in.queue, in.line, in.spare = nil, nil, nil, nil
}
