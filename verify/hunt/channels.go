package hunt

import (
	"bytes"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

type message[M any] struct {
	msg            M
	from, to, kind int32
	sent, part     int32
	copies         int32 // of equal idempotent messages
}

// send puts a message in flight, unless its receiver is absent or the lease
// between the two has lapsed.
func (m *model[M]) send(from, to int, msg M) {
	if m.list != nil {
		m.report(check.Model, "model: "+m.names().Of(protocol.ID(from))+" sends a message, and its algorithm shares memory")
		return
	}
	// At the start somebody may not have begun yet.
	absent := m.procs[to].process == nil && (m.now >= 0 || slices.Contains(m.sys.down, protocol.ID(to)))
	if absent || m.severed(from, to) {
		return
	}
	f := message[M]{msg, int32(from), int32(to), int32(m.alg.KindOf(msg)), m.now, m.part, 1}
	m.part++
	if m.alg.Idempotent != nil && m.alg.Idempotent(msg) {
		if g := m.equal(&f); g != nil {
			g.copies++
			return
		}
	}
	m.flight = append(m.flight, f)
}

// pending is how many messages are in flight.
func (m *model[M]) pending() (k int) {
	for i := range m.flight {
		k += int(m.flight[i].copies)
	}
	return k
}

// equal returns the message in flight that equals f, or nil: where channels are FIFO
// only if it is the last one of its channel.
func (m *model[M]) equal(f *message[M]) *message[M] {
	for k := len(m.flight) - 1; k >= 0; k-- {
		g := &m.flight[k]
		if g.from != f.from || g.to != f.to {
			continue
		}
		if g.kind == f.kind && m.alike(g.msg, f.msg) {
			return g
		}
		if m.sys.fifo {
			return nil
		}
	}
	return nil
}

// alike compares two messages.
func (m *model[M]) alike(a, b M) bool {
	m.text1, m.text2 = m.alg.Append(m.text1[:0], a), m.alg.Append(m.text2[:0], b)
	return bytes.Equal(m.text1, m.text2)
}

// stale reports whether message k of those in flight can do nothing any more: for the
// checker it is not there.
func (m *model[M]) stale(k int) bool {
	if m.alg.Stale == nil {
		return false
	}
	f := &m.flight[k]
	return m.alg.Stale(m.procs[f.from].process, m.procs[f.to].process,
		protocol.Channel{From: protocol.ID(f.from), To: protocol.ID(f.to)}, f.msg)
}

// forget takes the stale messages out of flight, now and then.
func (m *model[M]) forget() {
	const few = 100
	if m.alg.Stale == nil || len(m.flight) < max(few, m.crowded) {
		return
	}
	kept := m.flight[:0]
	for k := range m.flight {
		if !m.stale(k) {
			kept = append(kept, m.flight[k])
		}
	}
	m.flight = kept
	m.crowded = 2 * len(kept)
}

// apart reports whether u is a client whose lease at member j has lapsed.
func (m *model[M]) apart(u, j int) bool {
	return u >= m.sys.N && j < m.sys.N && m.procs[u].lapsed&(1<<j) != 0
}

// drop takes the messages from one process to another out of flight.
func (m *model[M]) drop(from, to int) {
	m.flight = slices.DeleteFunc(m.flight, func(f message[M]) bool { return int(f.from) == from && int(f.to) == to })
}

func (m *model[M]) deliver(c *choice) bool {
	k := m.find(c)
	if k < 0 || m.procs[c.b].process == nil || m.stale(k) || m.withheld(&m.flight[k]) {
		return false
	}
	m.receive(k, c)
	return true
}

// receive delivers message k of those in flight, as choice c, which names it then.
func (m *model[M]) receive(k int, c *choice) {
	f := m.flight[k]
	switch m.now = c.id; {
	case c.keep:
	case f.copies > 1:
		m.flight[k].copies--
	default:
		m.flight = slices.Delete(m.flight, k, k+1)
	}
	*c = choice{id: c.id, verb: scenario.Deliver, a: f.from, b: f.to, kind: f.kind, sent: f.sent, part: f.part, keep: c.keep}
	if m.peers() && m.alg.Detector != protocol.NoDetector {
		m.procs[f.to].told &^= 1 << f.from
	} else if m.procs[f.from].process == nil && int(f.to) < m.sys.N {
		m.procs[f.from].suspected &^= 1 << f.to
	}
	m.step(int(f.to), protocol.Input{Kind: protocol.Receive, From: protocol.ID(f.from)}, f.msg)
}

// fail loses a message, or puts one more copy of it in flight.
func (m *model[M]) fail(c *choice) bool {
	k := m.find(c)
	if k < 0 || m.stale(k) {
		return false
	}
	f := m.flight[k]
	c.kind, c.sent, c.part = f.kind, f.sent, f.part
	switch {
	case c.verb == scenario.Lose:
		m.flight = slices.Delete(m.flight, k, k+1)
	case m.alg.Idempotent != nil && m.alg.Idempotent(f.msg):
		return false // it may arrive again as it is
	default:
		m.flight = slices.Insert(m.flight, k, f)
	}
	return true
}

// find returns the message in flight that c delivers, or -1.
func (m *model[M]) find(c *choice) int {
	oldest := -1
	for k := range m.flight {
		f := &m.flight[k]
		switch {
		case f.from != c.a || f.to != c.b:
		case m.sys.fifo && f.kind != c.kind:
			return -1
		case m.sys.fifo, f.kind == c.kind && f.sent == c.sent && f.part == c.part:
			return k
		case f.kind == c.kind && oldest < 0 && !m.stale(k):
			oldest = k
		}
	}
	return oldest
}

// first reports whether message k of those in flight may arrive next.
func (m *model[M]) first(k int) bool {
	f := &m.flight[k]
	if m.withheld(f) {
		return false
	}
	if !m.sys.fifo {
		return true
	}
	return !slices.ContainsFunc(m.flight[:k], func(g message[M]) bool { return g.from == f.from && g.to == f.to })
}
