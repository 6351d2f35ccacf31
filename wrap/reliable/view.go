package reliable

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// view is a global state as the algorithm's own properties see it. A message is on
// its way while it may still be given to the algorithm of its receiver.
func view[M any](o *protocol.View) *protocol.View {
	procs := make([]*Process[M], len(o.Procs))
	for id, p := range protocol.Procs[*Process[M]](o) {
		procs[id] = p
	}
	v := *o
	v.InFlight = func(yield func(protocol.Channel, any) bool) {
		for id, p := range procs {
			if p == nil {
				continue
			}
			for q := range p.others {
				ch := protocol.Channel{From: protocol.ID(id), To: q.id}
				if !p.underWay(q, procs, func(m M) bool { return yield(ch, m) }) {
					return
				}
			}
		}
		// What is left of those who crashed, or forgot that they sent it.
		for ch, f := range protocol.InFlight[Frame[M]](o) {
			from, to := procs[ch.From], procs[ch.To]
			if f.Ack || to == nil || from != nil && from.made(ch.To, f) {
				continue
			}
			if to.wants(ch.From, f) && !yield(ch, f.Msg) {
				return
			}
		}
	}
	return &v
}

// underWay yields what q's window holds and its receiver still takes.
func (p *Process[M]) underWay(q *peer, procs []*Process[M], yield func(M) bool) bool {
	if int(q.id) >= len(procs) || procs[q.id] == nil {
		return true
	}
	to := procs[q.id]
	number, rest := q.window.Acked(), q.window.items
	for range q.window.Unacked() {
		var m M
		m, rest = p.decode(rest)
		number++
		f := Frame[M]{From: p.mine(q), To: q.theirs, Number: number}
		if q.theirs == 0 && p.isMember(q.id) {
			f.To = to.life // as soon as this end knows it
		}
		if to.wants(p.id, f) && !yield(m) {
			return false
		}
	}
	return true
}

// made reports whether this life sent f, which its window then holds if it is not
// acknowledged.
func (p *Process[M]) made(to protocol.ID, f Frame[M]) bool {
	q := p.look(to)
	return f.From == p.mine(q) && f.To == q.theirs && !q.closed
}

// wants reports whether f, a DATA, would be given to the algorithm, now or when what
// is before it has arrived.
func (p *Process[M]) wants(from protocol.ID, f Frame[M]) bool {
	q := p.look(from)
	switch {
	case f.To != p.mine(q) || p.ignores(q, f.From):
		return false
	case f.From > q.theirs:
		return true
	}
	return !q.has(f.Number)
}

// has reports whether a number was received.
func (q *peer) has(number uint64) bool {
	return number <= q.window.seen || slices.Contains(q.later, number)
}

// ignores reports whether nothing is taken from an end of that name. A client with leases hears of
// a new one from Restore.
func (p *Process[M]) ignores(q *peer, theirs uint64) bool {
	leased := !p.isMember(p.id) && p.wrapped.inner.Detector == protocol.LeaseDetector
	return theirs < q.theirs || q.closed && (theirs == q.theirs || leased)
}

// stale is protocol.Algorithm.Stale. What a frame still tells is one of these: a
// message, that a message has arrived, or what an end is called.
func (w *wrapped[M]) stale(from, to protocol.Process[Frame[M]], ch protocol.Channel, f Frame[M]) bool {
	if to == nil {
		return true
	}
	p := to.(*Process[M])
	q := p.look(ch.From)
	switch {
	case p.ignores(q, f.From):
		return true
	case f.Refused:
		return !q.awaits(f.To, f.Number)
	case f.To != p.mine(q) && (f.Ack || !p.refuses()):
		return true
	case f.To != p.mine(q):
	case f.Ack:
		return f.Number <= q.window.Acked()
	case !q.has(f.Number):
		return false
	}
	if from == nil {
		return true // nobody hears the answer
	}
	s := from.(*Process[M])
	back := s.look(ch.To)
	return s.mine(back) != f.From || !back.awaits(f.To, f.Number)
}
