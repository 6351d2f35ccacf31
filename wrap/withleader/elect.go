package withleader

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// firstTimer is the least timer of the election. Those of an algorithm are smaller, and
// those of package reliable larger.
const firstTimer = 1 << 15

// A pair is an algorithm and the election beside it.
type pair[M, E any] struct {
	alg      protocol.Algorithm[M]
	election protocol.Algorithm[E]
}

// With runs an election beside an algorithm that has Info.Elector. It panics where the two
// do not fit.
func With[M, E any](alg protocol.Algorithm[M], election protocol.Algorithm[E]) protocol.Algorithm[Frame[M, E]] {
	w := &pair[M, E]{alg, election}
	out := protocol.Algorithm[Frame[M, E]]{
		Info:   w.info(),
		New:    w.new,
		Fields: w.fields,
		KindOf: either(alg.KindOf, func(m E) int { return len(alg.Messages) + election.KindOf(m) }), // after those of the algorithm
		Ints:   either(alg.Ints, election.Ints),
		Text:   either(alg.Text, election.Text), // no name is that of both
	}
	out.Bounds = slices.Concat(alg.Bounds, election.Bounds)
	out.Invariants = slices.Concat(alg.Invariants, election.Invariants)
	return out
}

// info is what both are together.
func (w *pair[M, E]) info() protocol.Info {
	i, e := w.alg.Info, w.election.Info
	name := func(m protocol.Message) string { return m.Name }
	switch {
	case !i.Elector:
		panic(fmt.Sprintf("elect: %s has no use for a leader", i.Name))
	case e.Users != protocol.Nobody:
		panic(fmt.Sprintf("elect: %s is no election", e.Name))
	case i.Detector == protocol.LeaseDetector:
		panic(fmt.Sprintf("elect: %s has leases, and %s has none", i.Name, e.Name))
	}
	for _, m := range e.Messages {
		if slices.ContainsFunc(i.Messages, func(o protocol.Message) bool { return name(o) == name(m) }) {
			panic(fmt.Sprintf("elect: both %s and %s have a message %s", i.Name, e.Name, m.Name))
		}
		m.Overhead = true
		i.Messages = append(slices.Clip(i.Messages), m)
	}
	i.Elector = false
	i.Options = append(slices.Clip(i.Options), e.Options...)
	i.FIFO = i.FIFO || e.FIFO
	i.Synchronous = i.Synchronous || e.Synchronous
	i.Incarnations = i.Incarnations || e.Incarnations
	i.Tolerates &= e.Tolerates
	if i.Detector == protocol.NoDetector { // a perfect one is also one that may be wrong
		i.Detector = e.Detector
	}
	return i
}
