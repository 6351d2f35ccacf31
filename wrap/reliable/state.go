package reliable

import (
	"bytes"
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// State implements protocol.Process. A member that is as at first takes one byte, a
// client that is as at first none.
func (p *Process[M]) State(c *protocol.Codec) {
	if !c.Moving() || p.wrapped.inner.MapState != nil {
		p.inner.State(c)
	}
	c.Uint(&p.life)
	for _, q := range p.peers[:p.n] {
		if q.id != p.id {
			p.visit(c, q)
		}
	}
	clients, least := p.peers[p.n:], protocol.ID(p.n)
	if !c.Reading() {
		clients = slices.DeleteFunc(clients, (*peer).fresh)
	}
	for i := range protocol.List(c, &clients) {
		q := protocol.Pointer(c, &clients[i])
		c.AnyID(&q.id)
		c.Want(q.id >= least)
		p.visit(c, q)
		c.Want(!q.fresh())
		least = q.id + 1
	}
	p.peers = append(p.peers[:p.n], clients...)
	c.Want(p.isMember(p.id) || p.life == 0 && len(clients) == 0)
}

// fresh reports whether q is as it is before anything happens.
func (q *peer) fresh() bool {
	return q.lease == 0 && q.theirs == 0 && !q.closed && len(q.later) == 0 &&
		q.window.seen == 0 && q.window.acked == 0 && q.window.Unacked() == 0
}

// How a peer is.
const (
	isFresh uint8 = iota
	isOpen
	isClosed
)

// visit visits a peer, and refuses what it cannot be.
func (p *Process[M]) visit(c *protocol.Codec, q *peer) {
	if c.Moving() {
		p.move(c, q)
		return
	}
	how := isOpen
	switch {
	case c.Reading():
		*q = peer{id: q.id, later: q.later[:0]}
	case q.fresh():
		how = isFresh
	case q.closed:
		how = isClosed
	}
	if protocol.Upto(c, &how, isClosed); how == isFresh {
		return
	}
	c.Uints(&q.lease, &q.theirs)
	if q.closed = how == isClosed; !q.closed {
		q.window.State(c)
		last := q.window.seen + 1
		for i := range protocol.List(c, &q.later) {
			c.Uint(&q.later[i])
			c.Want(q.later[i] > last)
			last = q.later[i]
		}
	}
	if _, err := c.Rest(); c.Reading() && err == nil {
		c.Want(!q.fresh() && (q.lease == 0 || !p.isMember(p.id)) && p.messages(&q.window) &&
			(len(q.later) == 0 || !p.wrapped.inner.FIFO))
	}
}

// messages reports whether a window holds encodings of messages, all on their way.
func (p *Process[M]) messages(w *Window) bool {
	w.sent = w.most
	rest := w.items
	for i := range w.ends {
		item := w.items[w.position(i):w.position(i+1)]
		m, after, err := p.wrapped.inner.Read(rest)
		if err != nil || len(rest)-len(after) != len(item) || !bytes.Equal(p.wrapped.inner.Append(nil, m), item) {
			return false
		}
		rest = after
	}
	return w.most == w.acked+uint64(len(w.ends))
}

// numbers is the counter of the frames on a channel. No algorithm has a time like its.
func numbers(from, to protocol.ID) protocol.Counter {
	return protocol.Counter{Member: from, User: to, Time: math.MaxUint64}
}

// move moves the counters of a peer: those of messages that are not acknowledged, which are
// as good as under way, and the numbers of frames.
func (p *Process[M]) move(c *protocol.Codec, q *peer) {
	w := &q.window
	if p.wrapped.inner.MapState != nil {
		rest := w.items
		w.items, w.ends, w.from = nil, nil, 0
		c.Channel = protocol.Channel{From: p.id, To: q.id}
		for len(rest) > 0 {
			var m M
			m, rest = p.decode(rest)
			w.items = p.encode(w.items, p.wrapped.inner.Fields(m, c))
			w.ends = append(w.ends, uint64(len(w.items)))
		}
	}
	if !p.numbered {
		return
	}
	acked := w.acked
	c.Count(&w.acked, numbers(p.id, q.id))
	w.sent += w.acked - acked
	w.most += w.acked - acked
	c.Count(&w.seen, numbers(q.id, p.id))
	for i := range q.later {
		c.Count(&q.later[i], numbers(q.id, p.id))
	}
}
