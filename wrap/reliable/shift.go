package reliable

import (
	"math"

	"github.com/poundlock/poundlock/protocol"
)

// numbered reports whether the numbers of frames are counters that the checker may
// move: where every end of a channel exists from the start and never begins anew.
func (w wrapped[M]) numbered() bool {
	return w.inner.Users == protocol.Members && !w.info().Incarnations
}

func (w wrapped[M]) shifts() bool { return w.numbered() || w.inner.MapState != nil }

// numbers is the counter of the frames from one process to another. No algorithm
// has a time like its.
func numbers(from, to protocol.ID) protocol.Counter {
	return protocol.Counter{Member: from, User: to, Time: math.MaxUint64}
}

func (w wrapped[M]) mapState(state protocol.Process[Frame[M]], f func(protocol.Counter, uint64) uint64) {
	p := state.(*Process[M])
	if w.inner.MapState != nil {
		w.inner.MapState(p.inner, f)
		for q := range p.peers() {
			p.mapItems(q, f)
		}
	}
	if !w.numbered() {
		return
	}
	for q := range p.peers() {
		by := f(numbers(p.id, q.id), q.window.acked) - q.window.acked
		q.window.acked += by
		q.window.sent += by
		q.window.most += by
		in := numbers(q.id, p.id)
		q.window.seen = f(in, q.window.seen)
		for i, number := range q.later {
			q.later[i] = f(in, number)
		}
	}
}

// mapItems maps the messages that are not acknowledged, which are as good as under
// way.
func (p *Process[M]) mapItems(q *peer, f func(protocol.Counter, uint64) uint64) {
	w := &q.window
	old := *w
	w.items, w.ends, w.from = nil, nil, 0
	for rest := old.items; len(rest) > 0; {
		var m M
		m, rest = p.decode(rest)
		p.wrapped.inner.MapMsg(protocol.Channel{From: p.id, To: q.id}, &m, f)
		w.items = p.encode(w.items, m)
		w.ends = append(w.ends, uint64(len(w.items)))
	}
}

func (w wrapped[M]) mapMsg(ch protocol.Channel, m *Frame[M], f func(protocol.Counter, uint64) uint64) {
	if !m.Ack && w.inner.MapMsg != nil {
		w.inner.MapMsg(ch, &m.Msg, f)
	}
	switch {
	case !w.numbered():
	case m.Ack:
		m.Number = f(numbers(ch.To, ch.From), m.Number)
	default:
		m.Number = f(numbers(ch.From, ch.To), m.Number)
	}
}
