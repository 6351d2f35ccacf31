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
	for k, s := range n.shards {
		s.inbox.deliver(p, uint16(k))
	}
	clear(p.messages)
	p.messages = p.messages[:0]
}

// deliver puts those messages of a parcel into the line that are for this shard. It waits where that takes a while.
func (in *inbox) deliver(p *parcel, place uint16) {
	count := 0
	for i := range p.messages {
		if p.messages[i].shard == place {
			count++
		}
	}
	if count == 0 {
		return
	}
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
		if m := &p.messages[i]; m.shard == place {
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
