package reliable

import (
	"cmp"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// burst is how many messages are sent again at once, the oldest ones, if no more than
// twice as many wait: see peer.due.
const burst = 8

// A Process is a process of an algorithm behind its channels.
type Process[M any] struct {
	*wrapped[M]
	inner protocol.Process[M]
	id    protocol.ID
	after int64 // ns until frames are sent again

	life  uint64  // of a member, its incarnation; 0 if unknown
	n     int     // members
	peers []*peer // by id: the members, and at one of them the clients that it has met; its own entry is never used

	out   protocol.Out[M] // the effects of inner
	codec protocol.Codec
}

// A peer is one end of the channels with another process.
type peer struct {
	id     protocol.ID
	lease  uint64 // of a client towards a member: how many leases have lapsed
	theirs uint64 // what the other end calls itself, as far as is known
	// closed: nothing is sent or taken, because a lease has lapsed, the other end
	// has crashed or too much is unacknowledged. The window is then empty.
	closed bool
	window Window
	later  []uint64 // numbers received behind a gap, in order; none where order is kept
}

func (p *Process[M]) isMember(id protocol.ID) bool { return id < protocol.ID(p.n) }

// mine is what this process is called in frames to q.
func (p *Process[M]) mine(q *peer) uint64 {
	if p.isMember(p.id) {
		return p.life
	}
	return q.lease
}

// peer returns the end of the channels with process id.
func (p *Process[M]) peer(id protocol.ID) *peer {
	i, met := p.find(id)
	if !met {
		p.peers = slices.Insert(p.peers, i, &peer{id: id})
	}
	return p.peers[i]
}

func (p *Process[M]) find(id protocol.ID) (int, bool) {
	if p.isMember(id) {
		return int(id), true
	}
	return slices.BinarySearchFunc(p.peers, id, func(q *peer, id protocol.ID) int { return cmp.Compare(q.id, id) })
}

// look is peer for those who only look.
func (p *Process[M]) look(id protocol.ID) *peer {
	if i, met := p.find(id); met {
		return p.peers[i]
	}
	return &peer{id: id}
}

// others yields all peers.
func (p *Process[M]) others(yield func(*peer) bool) {
	for _, q := range p.peers {
		if q.id != p.id && !yield(q) {
			return
		}
	}
}

// Step implements protocol.Process.
func (p *Process[M]) Step(ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	var none M
	switch ev.Kind {
	case protocol.Receive:
		p.receive(ev, out)
		return
	case protocol.Timeout:
		if ev.Timer >= firstTimer {
			q := p.look(protocol.ID(ev.Timer - firstTimer))
			if q.window.Unacked() == 0 {
				panic("link: unexpected timer")
			}
			p.repeat(q, out)
			return
		}
	case protocol.Start:
		if p.isMember(p.id) {
			p.life = ev.Arg
		}
		if p.wrapped.inner.Detector != protocol.LeaseDetector {
			ev.Arg = 0 // which the wrapper alone asked for
		}
	case protocol.Suspect:
		p.shut(p.peer(ev.From), out)
	case protocol.Restore:
		p.restore(ev.From, ev.Arg, out)
	}
	p.give(ev.Input, none, out)
}

// give steps the algorithm and takes its messages to their channels.
func (p *Process[M]) give(in protocol.Input, m M, out *protocol.Out[Frame[M]]) {
	p.out.Reset()
	p.inner.Step(protocol.Event[M]{Input: in, Msg: m}, &p.out)
	for i := range p.out.Effects {
		e := &p.out.Effects[i]
		switch e.Do {
		case protocol.Send:
			p.send(e.To, e.Msg, out)
		case protocol.Broadcast:
			for id := range protocol.ID(p.n) {
				if id != p.id {
					p.send(id, e.Msg, out)
				}
			}
		default:
			if e.Timer >= firstTimer {
				panic("link: a timer that is the wrapper's")
			}
			out.Effects = append(out.Effects, protocol.Effect[Frame[M]]{Act: e.Act})
		}
	}
}

// send puts m into the window of its channel and on its way. To a closed channel
// it is lost.
func (p *Process[M]) send(to protocol.ID, m M, out *protocol.Out[Frame[M]]) {
	q := p.peer(to)
	if q.closed {
		return
	}
	number, b := q.window.Next()
	if err := q.window.Push(p.encode(b, m)); err != nil {
		p.shut(q, out)
		return
	}
	q.window.carried()
	if q.window.Unacked() == 1 {
		out.SetTimer(q.timer(), p.after, 0)
	}
	out.Send(to, Frame[M]{From: p.mine(q), To: q.theirs, Number: number, Msg: m})
}

func (p *Process[M]) encode(b []byte, m M) []byte {
	p.wrapped.inner.Fields(m, p.codec.Appending(b))
	return p.codec.Bytes()
}

// decode reads a message that encode wrote, and returns what follows it.
func (p *Process[M]) decode(b []byte) (m M, rest []byte) {
	m = p.wrapped.inner.Fields(m, p.codec.Loading(b))
	rest, _ = p.codec.Rest()
	return m, rest
}

func (q *peer) timer() uint32 { return firstTimer + uint32(q.id) }

// repeat sends what is not acknowledged once more.
func (p *Process[M]) repeat(q *peer, out *protocol.Out[Frame[M]]) {
	if q.window.Unacked() == 0 {
		return
	}
	number, rest := q.window.Acked(), q.window.items
	for range q.due() {
		var m M
		m, rest = p.decode(rest)
		number++
		out.Resend(q.id, Frame[M]{From: p.mine(q), To: q.theirs, Number: number, Msg: m})
	}
	out.SetTimer(q.timer(), p.after, 0)
}

// due is how many messages are sent again at once. Of many it is the older half: the more
// wait, the more is sent again, so that a steady flow cannot outrun a channel that loses
// much, as it would with any fixed number, until the window is full and all is lost. An end
// that has acknowledged nothing yet may not be there at all.
func (q *peer) due() int {
	all := q.window.Unacked()
	if q.window.Acked() == 0 {
		return min(burst, all)
	}
	return min(max(burst, all/2), all)
}

// receive handles a frame. One that is not for this life, or not of a life of the
// sender that is known or new, is not taken.
func (p *Process[M]) receive(ev protocol.Event[Frame[M]], out *protocol.Out[Frame[M]]) {
	q, f := p.peer(ev.From), ev.Msg
	switch {
	case p.ignores(q, f.From):
		return
	case f.Refused && q.awaits(f.To, f.Number):
		p.meet(q, f.From, out)
		return
	case f.Refused:
		return
	case f.To != p.mine(q):
		if !f.Ack && p.refuses() {
			out.Send(q.id, Frame[M]{Ack: true, Refused: true, From: p.life, To: f.To, Number: f.Number})
		}
		return
	case f.From > q.theirs:
		p.meet(q, f.From, out)
	}
	switch {
	case f.Ack:
		p.acked(q, f.Number, out)
	case p.takes(q, f.Number):
		p.give(protocol.Input{Kind: protocol.Receive, From: ev.From, Now: ev.Now}, f.Msg, out)
		if f.Number <= q.window.Received() {
			p.ack(q, q.window.Received(), out)
		}
	case f.Number <= q.window.Received():
		p.ack(q, f.Number, out) // its ACK may have been lost
	}
}

// refuses reports whether this end says what it is called when a frame comes for a life before: where
// nobody else says so. The frame changes nothing here. It may be a late copy, and a copy of what
// was acknowledged changes nothing at its sender either, however often this end has forgotten
// since: stale relies on both.
func (p *Process[M]) refuses() bool {
	return p.isMember(p.id) && p.wrapped.inner.Detector != protocol.LeaseDetector
}

// awaits reports whether a frame of that number, to that life of the other end, is not acknowledged.
func (q *peer) awaits(life, number uint64) bool {
	return !q.closed && q.theirs == life && number > q.window.Acked()
}

// takes reports whether a number is received for the first time, and in order where
// that matters.
func (p *Process[M]) takes(q *peer, number uint64) bool {
	next := q.window.Received() + 1
	i, known := slices.BinarySearch(q.later, number)
	switch {
	case number < next || known:
		return false
	case number == next:
		q.window.seen++
		for len(q.later) > 0 && q.later[0] == q.window.seen+1 {
			q.window.seen++
			q.later = slices.Delete(q.later, 0, 1)
		}
		return true
	case p.wrapped.inner.FIFO:
		return false // it comes again
	}
	q.later = slices.Insert(q.later, i, number)
	return true
}

func (p *Process[M]) ack(q *peer, number uint64, out *protocol.Out[Frame[M]]) {
	out.Send(q.id, Frame[M]{Ack: true, From: p.mine(q), To: q.theirs, Number: number})
}

func (p *Process[M]) acked(q *peer, number uint64, out *protocol.Out[Frame[M]]) {
	before := q.window.Unacked()
	if err := q.window.Ack(number); err != nil {
		panic(err.Error())
	}
	switch after := q.window.Unacked(); {
	case after == before:
	case after == 0:
		out.StopTimer(q.timer())
	default:
		out.SetTimer(q.timer(), p.after, 0)
	}
}

// meet begins the channels with a later life, or lease, of the other end. What was
// sent to the one before is lost. A member that was not known until now has taken
// nothing, so what was sent is for it.
func (p *Process[M]) meet(q *peer, theirs uint64, out *protocol.Out[Frame[M]]) {
	if q.theirs == 0 && p.isMember(q.id) {
		q.theirs = theirs
		p.repeat(q, out)
		return
	}
	p.shut(q, out)
	q.theirs, q.closed = theirs, false
}

// shut forgets what was sent and received, and closes the channels.
func (p *Process[M]) shut(q *peer, out *protocol.Out[Frame[M]]) {
	if q.window.Unacked() > 0 {
		out.StopTimer(q.timer())
	}
	q.window, q.later, q.closed = Window{}, q.later[:0], true
}

// restore begins the channels with a member in a new lease, or with its new life.
func (p *Process[M]) restore(member protocol.ID, life uint64, out *protocol.Out[Frame[M]]) {
	q := p.peer(member)
	if q.closed {
		q.closed = false
		q.lease++
	}
	if life > q.theirs {
		p.meet(q, life, out)
	}
}
