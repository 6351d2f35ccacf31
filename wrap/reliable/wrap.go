package reliable

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// firstTimer is the least timer of the wrapper: that of the frames to process 0.
// Those of an algorithm are smaller.
const firstTimer = 1 << 16

// wrapped is an algorithm with its wrapper.
type wrapped[M any] struct {
	inner protocol.Algorithm[M]
	// numbered: the numbers of frames are counters that the checker may move, because
	// every end of a channel exists from the start and never begins anew.
	numbered bool
}

// Wrap gives an algorithm whose model has reliable channels channels that lose
// messages, repeat them and deliver them in any order.
func Wrap[M any](a protocol.Algorithm[M]) protocol.Algorithm[Frame[M]] {
	w := &wrapped[M]{inner: a}
	w.numbered = a.Users == protocol.Members && !w.info().Incarnations
	out := protocol.Algorithm[Frame[M]]{
		Info:   w.info(),
		New:    w.new,
		Fields: w.fields,
		KindOf: w.kindOf,
		Ints:   w.ints,
		Text:   w.text,
	}
	out.Idempotent = func(Frame[M]) bool { return true }
	out.Stale = w.stale
	if w.numbered || a.MapState != nil {
		out.MapState, out.MapMsg = protocol.MapState[Frame[M]], protocol.MapMsg(w.fields)
	}
	out.Bounds = append(slices.Clip(a.Bounds), protocol.NewBound("unacknowledged frames of a channel", maxUnacked, (*Process[M]).unacked))
	if !w.numbered {
		out.Bounds = append(out.Bounds, protocol.NewBound("frames of a channel", maxFrames, (*Process[M]).sent))
	}
	for _, i := range a.Invariants {
		out.Invariants = append(out.Invariants, protocol.Invariant{
			Name: i.Name, Err: func(v *protocol.View) error { return i.Err(view[M](v)) },
		})
	}
	out.Unsettled = a.Unsettled
	return out
}

// resendOption is when to send again what is not acknowledged.
var resendOption = protocol.Option{
	Name:    "resend",
	Default: func(protocol.Config) int64 { return 10e6 },
	Range:   func(protocol.Config) (least, most int64) { return 1, 3600e9 },
	Doc:     "ns: what is not acknowledged is sent again after so long (default 10ms)",
}

func (w *wrapped[M]) info() protocol.Info {
	i := w.inner.Info
	i.Title += ", over channels that lose and repeat"
	i.FIFO = false // the wrapper puts in order what must be
	i.Tolerates |= protocol.Loss | protocol.Duplication
	i.Messages = append(slices.Clip(i.Messages), protocol.Message{Name: "ACK", Overhead: true})
	i.Options = append(slices.Clip(i.Options), resendOption)
	i.Ordered = false // an ACK tells what happened before, and no clock of the algorithm hears of it
	i.Incarnations = i.Incarnations || i.Tolerates&protocol.Amnesia != 0
	if i.Incarnations && i.Detector != protocol.LeaseDetector {
		// Nobody is told of the members' incarnations: the first frame to each is in vain.
		i.Claims = slices.DeleteFunc(slices.Clone(i.Claims), func(c protocol.Claim) bool {
			return c.Measure != protocol.Messages
		})
	}
	return i
}

func (w *wrapped[M]) new(id protocol.ID, c protocol.Config) protocol.Process[Frame[M]] {
	p := &Process[M]{
		wrapped: w, inner: w.inner.New(id, c), id: id,
		n: c.N, after: w.info().Option(c, resendOption.Name),
	}
	for j := range c.N {
		p.peers = append(p.peers, &peer{id: protocol.ID(j)})
	}
	return p
}

// Unwrap returns the algorithm's own process.
func (p *Process[M]) Unwrap() any { return p.inner }

// What bounds a channel in the checker: its frames, where their numbers cannot be
// moved because a server does not know of the channel from a client beforehand; and
// those that are not acknowledged, since an ACK may take for ever.
const (
	maxFrames  = 8
	maxUnacked = 3
)

// sent is the most frames that p sent to one process.
func (p *Process[M]) sent() uint64 {
	most := uint64(0)
	for q := range p.others {
		most = max(most, q.window.most)
	}
	return most
}

// unacked is the most frames that one process has not acknowledged to p.
func (p *Process[M]) unacked() uint64 {
	most := 0
	for q := range p.others {
		most = max(most, q.window.Unacked())
	}
	return uint64(most)
}
