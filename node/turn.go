package node

import (
	"slices"

	"github.com/poundlock/poundlock/transport"
)

// Sessions take turns at a shard. A turn is a few messages, each session has at most one in the line, and the next
// one goes to the end of the line: so a message waits for at most one turn of each other session, however
// much these have to say. A reader that cannot put more into the line waits, and TCP slows its peer down.
const (
	turnMessages = 64
	// turnBytes is how many bytes of frames a turn may keep in memory that Node.frames does not count: see readFrame.
	turnBytes = smallFrame
	// What a shard takes from the line before it looks at what its users and its timers want.
	maxRound      = 1 << 10  // messages
	maxRoundBytes = 16 << 20 // of the frames that they are in
	spareTurns    = 64       // whose memory a shard keeps
)

// A message is one that arrived for a lock.
type message struct {
	sess     *session
	kind     Kind
	refusal  bool   // the peer does not serve the lock; body says why
	labelled bool   // body begins with a label, which is sound
	shard    uint16 // its place in Node.shards
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

// A turn is what waits in the line of a shard for one session. What it has is its shard's, under mu.
type turn struct {
	sess     *session
	messages []message
	size     int           // bytes of frames, which the messages keep in memory
	taken    chan struct{} // nil: nobody waits until the shard has taken it
}

// A parcel is what the reader of a session has for the shards: at most turnMessages messages of one frame.
type parcel struct {
	messages []message
	size     int // bytes of the frame
}

// deliver puts the messages into the lines of their shards, and waits where that takes a while. Those of a frame that is
// counted in Node.frames have been taken when it returns, so that the frame need not be counted any more.
func (p *parcel) deliver(n *Node) {
	if len(p.messages) == 0 {
		return
	}
	for _, s := range n.shards {
		s.deliver(p)
	}
	clear(p.messages)
	p.messages = p.messages[:0]
}

func (s *shard) deliver(p *parcel) {
	count := 0
	for i := range p.messages {
		if p.messages[i].shard == s.place {
			count++
		}
	}
	if count == 0 {
		return
	}
	defer s.signal()
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := p.messages[0].sess
	t := s.turns[sess]
	for t != nil && (len(t.messages)+count > turnMessages || t.size+p.size > turnBytes) {
		s.await(t)
		t = s.turns[sess]
	}
	if s.closed {
		return
	}
	if t == nil {
		t = s.newTurn(sess)
	}
	for i := range p.messages {
		if m := &p.messages[i]; m.shard == s.place {
			t.messages = append(t.messages, *m)
		}
	}
	if t.size += p.size; p.size > turnBytes {
		s.await(t)
	}
}

// await waits until a turn has been taken. mu is held, but not meanwhile.
func (s *shard) await(t *turn) {
	if t.taken == nil {
		t.taken = make(chan struct{})
	}
	taken := t.taken
	s.mu.Unlock()
	s.signal()
	<-taken
	s.mu.Lock()
}

// newTurn puts an empty turn at the end of the line. mu is held.
func (s *shard) newTurn(sess *session) *turn {
	t := &turn{}
	if k := len(s.spare); k > 0 {
		t, s.spare = s.spare[k-1], s.spare[:k-1]
	}
	t.sess = sess
	s.turns[sess] = t
	s.line = append(s.line, t)
	return t
}

// takeTurns appends a round of messages from the line to batch. mu is held.
func (s *shard) takeTurns(batch []message) []message {
	k := 0
	for size := 0; k < len(s.line) && len(batch) < maxRound && size < maxRoundBytes; k++ {
		t := s.line[k]
		batch = append(batch, t.messages...)
		size += t.size
		s.taken(t)
	}
	s.line = slices.Delete(s.line, 0, k)
	return batch
}

// taken takes a turn out of the books. mu is held.
func (s *shard) taken(t *turn) {
	delete(s.turns, t.sess)
	if t.taken != nil {
		close(t.taken)
	}
	if len(s.spare) < spareTurns {
		clear(t.messages)
		*t = turn{messages: t.messages[:0]}
		s.spare = append(s.spare, t)
	}
}

// closeLine lets all go that wait. mu is held.
func (s *shard) closeLine() {
	for _, t := range s.line {
		s.taken(t)
	}
	s.line, s.spare = nil, nil
}

// hear handles messages that were taken from the line, and forgets them.
func (s *shard) hear(batch []message) []message {
	for i := range batch {
		if m := &batch[i]; m.refusal {
			s.refused(m)
		} else {
			s.message(m)
		}
	}
	clear(batch)
	return batch[:0]
}
