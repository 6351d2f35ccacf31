package reliable

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrFull says that the other end has not acknowledged for so long that the
// bound of a Window is reached. The channel is then lost: its user must start a
// new one.
var ErrFull = errors.New("link: too much is unacknowledged")

// The default bounds of a Window.
const (
	MaxItems = 1 << 16
	MaxBytes = 4 << 20
)

// keep is how much memory a Window may keep for the next items while it is empty: a
// process has one for each peer.
const keep = 8 << 10 // bytes

// A Window is one end of a channel between one life of a process and one life
// of another: at most once, in order, and exactly once while both live. It is
// data only: it neither reads a clock nor writes to a connection. The zero
// Window is ready, with the default bounds.
//
// Items are numbered from 1. Connections deliver in order, so an acknowledgement
// is one number, and so is all that must be remembered of what was received.
type Window struct {
	MaxItems, MaxBytes int // bounds of what is unacknowledged; 0: the defaults

	items []byte   // the encodings of acked+1, acked+2, ...
	ends  []uint64 // where each of them ends, counted from the first byte ever pushed
	from  uint64   // the position of items[0] in that count
	acked uint64   // every item up to it has been received by the other end
	sent  uint64   // the last item given to the current connection
	most  uint64   // the last item given to any connection
	seen  uint64   // the last item received from the other end

	// Invariant: acked <= sent <= most <= acked+len(ends).
}

// Next returns the number of the next item to push, and the buffer that its
// encoding must be appended to.
func (w *Window) Next() (seq uint64, b []byte) {
	return w.acked + uint64(len(w.ends)) + 1, w.items
}

// Push takes what Next returned with one encoding appended. On ErrFull the
// window is as before.
func (w *Window) Push(b []byte) error {
	most, mostBytes := w.bounds()
	if len(w.ends) >= most || len(b) > mostBytes {
		return fmt.Errorf("%w: %d items, %d bytes", ErrFull, len(w.ends), len(w.items))
	}
	w.items = b
	w.ends = append(w.ends, w.from+uint64(len(b)))
	return nil
}

func (w *Window) bounds() (items, bytes int) {
	return cmp.Or(w.MaxItems, MaxItems), cmp.Or(w.MaxBytes, MaxBytes)
}

// Take appends items that the current connection has not carried yet to b:
// as many as fit into limit bytes, yet at least one.
func (w *Window) Take(b []byte, limit int) []byte {
	i := int(w.sent - w.acked)
	if i == len(w.ends) {
		return b
	}
	start := w.position(i)
	end := start
	for j := i; j < len(w.ends); j++ {
		e := int(w.ends[j] - w.from)
		if e-start > limit && j > i {
			break
		}
		end = e
		w.sent++
	}
	w.most = max(w.most, w.sent)
	return append(b, w.items[start:end]...)
}

// carried notes that everything was given to the connection.
func (w *Window) carried() {
	w.sent = w.acked + uint64(len(w.ends))
	w.most = w.sent
}

// position is where item i, counted from the first unacknowledged one, begins.
func (w *Window) position(i int) int {
	if i == 0 {
		return 0
	}
	return int(w.ends[i-1] - w.from)
}

// Ack notes that the other end has received every item up to seq. Numbers that
// are known already do nothing; one of an item that was never sent is an error.
// The current connection need not have carried it: the other end may have looked
// at what an old one brought after it had said where the current one begins.
func (w *Window) Ack(seq uint64) error {
	if seq > w.most {
		return fmt.Errorf("link: item %d is acknowledged, but only %d were sent", seq, w.most)
	}
	w.forget(seq)
	w.sent = max(w.sent, w.acked)
	return nil
}

// forget drops the items up to seq. What remains is moved to the front: little
// when acknowledgements come in time, and bounded by MaxBytes when not.
func (w *Window) forget(seq uint64) {
	if seq <= w.acked {
		return
	}
	k := int(seq - w.acked)
	end := w.position(k)
	w.from = w.ends[k-1]
	w.items = slices.Delete(w.items, 0, end)
	w.ends = slices.Delete(w.ends, 0, k)
	w.acked = seq
	if len(w.ends) == 0 && cap(w.items) > keep {
		w.items, w.ends = nil, nil // a burst must not be paid for ever
	}
}

// Restart begins a new connection, on which the other end says that it has
// received every item up to seq: all later ones are to be taken again. On error
// the ends do not belong together, and nothing has changed.
func (w *Window) Restart(seq uint64) error {
	if seq < w.acked || seq > w.most {
		return fmt.Errorf("link: the other end received %d items; %d are acknowledged, %d were sent",
			seq, w.acked, w.most)
	}
	w.forget(seq)
	w.sent = seq
	return nil
}

// Receive reports whether item seq is new, so that it must be delivered. An
// error says that items before it are missing, which a connection that keeps
// the order never does.
func (w *Window) Receive(seq uint64) (isNew bool, err error) {
	switch {
	case seq <= w.seen:
		return false, nil
	case seq == w.seen+1:
		w.seen = seq
		return true, nil
	}
	return false, fmt.Errorf("link: item %d follows item %d", seq, w.seen)
}

// Resume has a channel go on from what was written down of it: all that was pushed may have reached the other end, and
// what that has sent after item seen is not here, and comes again.
func (w *Window) Resume(seen uint64) {
	w.seen = seen
	w.carried()
}

// Received is the last item received: the number to acknowledge.
func (w *Window) Received() uint64 { return w.seen }

// Acked is the last item that the other end is known to have received.
func (w *Window) Acked() uint64 { return w.acked }

// Unacked is the number of items that the other end has not acknowledged.
func (w *Window) Unacked() int { return len(w.ends) }

// UnackedBytes is the size of their encodings.
func (w *Window) UnackedBytes() int { return len(w.items) }
