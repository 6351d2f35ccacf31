package node

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/poundlock/poundlock/internal/shrinkmap"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/transport"
)

// An op says what an event asks of a loop.
type op uint8

const (
	opTry op = iota
	opCancel
	opIssue
	opDowngrade
	opExit
	opDo  // do
	opAsk // do, once all is handled that has come until then; with nil where the loop closes before
	opClose
)

// An event is what a user of a lock wants. Everything else that is for a loop says itself what to do there.
type event struct {
	op   op
	once bool   // opTry
	name string // of the lock
	msg  []byte // opIssue: the operation; opDowngrade: the group
	do   func(*loop)
}

// An inbox is what waits for a loop: events and, in a line, turns of sessions. Anybody puts something in, and the
// loop takes it out.
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
// callbacks. It reports false when the loop is closed. What is posted is
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

// postUrgent queues an event before all others that are not urgent.
func (in *inbox) postUrgent(e event) {
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

// take takes out all events, and a round of messages, unless these are to stay. It keeps the memory that it is given. What comes afterwards, or
// is left, signals.
func (in *inbox) take(urgent, queue []event, messages []message, stay bool) ([]event, []event, []message) {
	select {
	case <-in.wake: // for what is taken now
	default:
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	urgent, in.urgent = in.urgent, urgent[:0]
	queue, in.queue = in.queue, queue[:0]
	if stay {
		return urgent, queue, messages[:0]
	}
	if messages = in.takeTurns(messages[:0]); len(in.line) > 0 {
		in.signal()
	}
	return urgent, queue, messages
}

// settled reports whether only events that are not urgent wait.
func (in *inbox) settled() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.urgent)+len(in.line) == 0
}

// takeUrgent appends the events that are urgent.
func (in *inbox) takeUrgent(urgent []event) []event {
	in.mu.Lock()
	defer in.mu.Unlock()
	urgent = append(urgent, in.urgent...)
	clear(in.urgent)
	in.urgent = in.urgent[:0]
	return urgent
}

// idle reports whether nothing waits, and something may come.
func (in *inbox) idle() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.urgent)+len(in.queue)+len(in.line) == 0 && !in.closed
}

// size is how much waits.
func (in *inbox) size() (s LoopStats) {
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
		if e.op == opAsk {
			e.do(nil)
		}
	}
	for _, t := range in.line {
		in.taken(t)
	}
	in.urgent, in.queue, in.line, in.spare = nil, nil, nil, nil
}

// Sessions take turns at a loop. A turn is a few messages, each session has at most one in the line, and the next
// one goes to the end of the line: so a message waits for at most one turn of each other session, however
// much these have to say. A reader that cannot put more into the line waits, and TCP slows its peer down.
const (
	turnMessages = 64
	// turnBytes is how many bytes of frames a turn may keep in memory that Node.frames does not count: see readFrame.
	turnBytes = smallFrame
	// What a loop takes from the line before it looks at what its users and its timers want.
	maxRound      = 1 << 10  // messages
	maxRoundBytes = 16 << 20 // of the frames that they are in
	spareTurns    = 64       // whose memory a loop keeps
)

// A message is one that arrived for a lock.
type message struct {
	sess     *session
	kind     Kind
	refusal  bool   // the peer does not serve the lock; body says why
	labelled bool   // body begins with a label, which is sound
	seq      uint64 // its number in the session
	wakes    bool   // it only makes the process
	loop     uint16 // its place in Node.loops
	name     []byte
	body     []byte
}

// parts are the label of the user at the peer, if it has one, and the message itself.
func (m *message) parts() (label, body []byte) {
	if !m.labelled {
		return nil, m.body
	}
	label, body, _ = transport.SplitLabelled(m.body)
	return label, body
}

// A turn is what waits in the line of a loop for one session. What it has is its loop's, under mu.
type turn struct {
	sess     *session
	messages []message
	size     int           // bytes of frames, which the messages keep in memory
	taken    chan struct{} // nil: nobody waits until the loop has taken it
}

// A parcel is what the reader of a session has for the loops: at most turnMessages messages of one frame.
type parcel struct {
	messages []message
	size     int        // bytes of the frame
	kept     bool       // somebody may look at the frame after it has been delivered
	dirty    []*session // scratch
}

// deliver has the loops handle the messages: at once where a loop has nothing else to do, and else by putting them into its
// line, which waits where that takes a while. Those of a frame that is counted in Node.frames have been taken when it returns, so
// that the frame need not be counted any more.
func (p *parcel) deliver(n *Node) {
	if len(p.messages) == 0 {
		return
	}
	for k, l := range n.loops {
		if count := p.count(uint16(k)); count > 0 && !l.hearNow(p, uint16(k)) {
			p.kept = true
			l.inbox.deliver(p, uint16(k), count)
		}
	}
	clear(p.messages)
	p.messages = p.messages[:0]
}

// count is how many messages are for the loop at a place.
func (p *parcel) count(place uint16) (k int) {
	for i := range p.messages {
		if p.messages[i].loop == place {
			k++
		}
	}
	return k
}

// deliver puts those messages of a parcel into the line that are for this loop, count of them. It waits where that takes a while.
func (in *inbox) deliver(p *parcel, place uint16, count int) {
	defer in.signal()
	in.mu.Lock()
	defer in.mu.Unlock()
	sess := p.messages[0].sess
	t := in.turns[sess]
	for t != nil && (len(t.messages)+count > turnMessages || t.size+p.size > turnBytes) {
		in.await(t)
		t = in.turns[sess]
	}
	if in.closed {
		return
	}
	if t == nil {
		t = in.newTurn(sess)
	}
	for i := range p.messages {
		if m := &p.messages[i]; m.loop == place {
			t.messages = append(t.messages, *m)
		}
	}
	if t.size += p.size; p.size > turnBytes {
		in.await(t)
	}
}

// await waits until a turn has been taken. mu is held, but not meanwhile.
func (in *inbox) await(t *turn) {
	if t.taken == nil {
		t.taken = make(chan struct{})
	}
	taken := t.taken
	in.mu.Unlock()
	in.signal()
	<-taken
	in.mu.Lock()
}

// newTurn puts an empty turn at the end of the line. mu is held.
func (in *inbox) newTurn(sess *session) *turn {
	t := &turn{}
	if k := len(in.spare); k > 0 {
		t, in.spare = in.spare[k-1], in.spare[:k-1]
	}
	t.sess = sess
	in.turns[sess] = t
	in.line = append(in.line, t)
	return t
}

// takeTurns appends a round of messages from the line to batch. mu is held.
func (in *inbox) takeTurns(batch []message) []message {
	k := 0
	for size := 0; k < len(in.line) && len(batch) < maxRound && size < maxRoundBytes; k++ {
		t := in.line[k]
		batch = append(batch, t.messages...)
		size += t.size
		in.taken(t)
	}
	in.line = slices.Delete(in.line, 0, k)
	return batch
}

// taken takes a turn out of the books. mu is held.
func (in *inbox) taken(t *turn) {
	delete(in.turns, t.sess)
	if t.taken != nil {
		close(t.taken)
	}
	if len(in.spare) < spareTurns {
		clear(t.messages)
		*t = turn{messages: t.messages[:0]}
		in.spare = append(in.spare, t)
	}
}

// A user is the user of one lock, from Try to Rem.
type user struct {
	User
	supports map[protocol.ID]uint64 // what it was told last; shared
	kind     Kind
	labelled bool             // label is not empty
	section  protocol.Section // the loop's
	passage  passage          // of its Try; the pacer's
}

// wants are the groups that the user wants any one of.
func (u *user) wants() protocol.Groups {
	if s, ok := u.User.(Sharer); ok {
		return s.Wants()
	}
	return ""
}

// ahead is the head start of the user.
func (u *user) ahead() time.Duration {
	if e, ok := u.User.(Early); ok {
		return e.HeadStart()
	}
	return 0
}

// users are the users of the locks of a loop, and the locks that no user can have any more.
type users struct {
	mu     sync.Mutex // taken before that of the inbox
	byName shrinkmap.Map[string, *user]
	failed map[string]string // why a lock is dead at this node; written by the loop
	doomed string            // why all are, "": they are not
	closed bool
	left   func() // is called for each that leaves
}

// get is the user of a lock, nil if it has none.
func (s *users) get(name string) *user {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName.Get(name)
}

// enter makes u the user of a lock, and has its Try queued.
func (s *users) enter(name string, u *user, queue func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failure(name); err != nil { // also after the node has closed, perhaps for that
		return err
	}
	if s.closed {
		return ErrClosed
	}
	if s.byName.Has(name) {
		return fmt.Errorf("%w: %q", ErrBusy, name)
	}
	s.byName.Set(name, u)
	queue()
	return nil
}

// failure is why a lock is dead at this node, nil: it is not. mu is held.
func (s *users) failure(name string) error {
	if why, ok := s.failed[name]; ok || s.doomed != "" {
		return &FailedError{name, cmp.Or(s.doomed, why)}
	}
	return nil
}

// failing is failure for who does not hold mu.
func (s *users) failing(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure(name)
}

// leave forgets the user of a lock, before it is told Rem: it may Try again at
// once.
func (s *users) leave(name string) {
	s.mu.Lock()
	s.byName.Delete(name)
	s.mu.Unlock()
	s.left()
}

// fail notes that a lock is dead, and why. It returns its user, nil if it has none.
func (s *users) fail(name, why string) *user {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[name] = why
	return s.byName.Get(name)
}

// broken notes that all locks are dead, and why. It reports whether that is news.
func (s *users) broken(why string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.doomed == ""
	s.doomed = cmp.Or(s.doomed, why)
	return news
}

// close lets nobody enter any more, and returns the users that there are.
func (s *users) close() shrinkmap.Map[string, *user] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.byName
	s.byName, s.closed = shrinkmap.Map[string, *user]{}, true
	return all
}
