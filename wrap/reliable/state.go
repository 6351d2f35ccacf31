package reliable

import (
	"bytes"
	"encoding/binary"

	"github.com/poundlock/poundlock/protocol"
)

// AppendState implements protocol.Process. A member that is as at first takes one
// byte, a client that is as at first none.
func (p *Process[M]) AppendState(b []byte) []byte {
	b = protocol.AppendState(b, p.inner)
	b = binary.AppendUvarint(b, p.life)
	for j := range p.members {
		if protocol.ID(j) != p.id {
			b = p.members[j].appendState(b)
		}
	}
	met := uint64(0)
	for _, q := range p.clients {
		if !q.fresh() {
			met++
		}
	}
	b = binary.AppendUvarint(b, met)
	for _, q := range p.clients {
		if !q.fresh() {
			b = q.appendState(binary.AppendUvarint(b, uint64(q.id)))
		}
	}
	return b
}

// fresh reports whether q is as it is before anything happens.
func (q *peer) fresh() bool {
	return q.lease == 0 && q.theirs == 0 && !q.closed && len(q.later) == 0 &&
		q.window.seen == 0 && q.window.acked == 0 && q.window.Unacked() == 0
}

// How a peer is.
const (
	isFresh = iota
	isOpen
	isClosed
)

func (q *peer) appendState(b []byte) []byte {
	switch {
	case q.fresh():
		return append(b, isFresh)
	case q.closed:
		b = append(b, isClosed)
	default:
		b = append(b, isOpen)
	}
	b = binary.AppendUvarint(b, q.lease)
	b = binary.AppendUvarint(b, q.theirs)
	if q.closed {
		return b
	}
	b = q.window.AppendState(b)
	b = binary.AppendUvarint(b, uint64(len(q.later)))
	for _, number := range q.later {
		b = binary.AppendUvarint(b, number)
	}
	return b
}

// LoadState implements protocol.Process.
func (p *Process[M]) LoadState(b []byte) ([]byte, error) {
	b, err := protocol.LoadState(b, p.inner)
	if err != nil {
		return nil, err
	}
	r := protocol.Reader{Rest: b}
	p.life = r.Uint()
	if p.life != 0 && !p.isMember(p.id) {
		return nil, protocol.ErrShort
	}
	for j := range p.members {
		if protocol.ID(j) == p.id {
			continue
		}
		if err := p.load(&p.members[j], &r); err != nil {
			return nil, err
		}
	}
	met := r.Len()
	if met > 0 && !p.isMember(p.id) {
		return nil, protocol.ErrShort
	}
	p.clients = p.clients[:0]
	least := protocol.ID(len(p.members))
	for range met {
		q := &peer{id: protocol.ID(r.Uint())}
		if r.Err != nil || q.id < least {
			return nil, protocol.ErrShort
		}
		if err := p.load(q, &r); err != nil {
			return nil, err
		}
		if q.fresh() {
			return nil, protocol.ErrShort
		}
		least = q.id + 1
		p.clients = append(p.clients, q)
	}
	return r.Rest, r.Err
}

// State implements protocol.Process.
func (p *Process[M]) State(c *protocol.Codec) { c.Other(p.AppendState, p.LoadState) }

// load replaces q by what appendState wrote, and refuses what it cannot have written.
func (p *Process[M]) load(q *peer, r *protocol.Reader) error {
	*q = peer{id: q.id, later: q.later[:0]}
	how := r.Max(isClosed)
	if r.Err != nil || how == isFresh {
		return r.Err
	}
	q.lease, q.theirs, q.closed = r.Uint(), r.Uint(), how == isClosed
	if r.Err == nil && how == isOpen {
		if err := q.window.LoadState(r); err != nil {
			return err
		}
		last := q.window.seen + 1
		for range r.Len() {
			q.later = append(q.later, r.Uint())
			if k := q.later[len(q.later)-1]; k <= last {
				return protocol.ErrShort
			} else {
				last = k
			}
		}
	}
	if r.Err != nil || q.fresh() || q.lease != 0 && p.isMember(p.id) || !p.messages(&q.window) ||
		len(q.later) > 0 && p.wrapped.inner.FIFO {
		return protocol.ErrShort
	}
	return nil
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
