package reliable

import (
	"fmt"

	"github.com/poundlock/poundlock/protocol"
)

// A Frame is what wrapped processes send each other: DATA, which is one message of
// the algorithm, or ACK.
//
// From and To say for which ends it is meant. A member is named by its incarnation,
// a client towards a member by how many of its leases there have lapsed. 0 is the
// first lease of a client, and a member whose incarnation nobody knows.
type Frame[M any] struct {
	Ack      bool
	Refused  bool // of an ACK: it was for the life To, and the one that is there is From
	From, To uint64
	Number   uint64 // of a DATA, from 1; of an ACK, every DATA up to it has arrived, or the one refused
	Msg      M      // of a DATA
}

func (w *wrapped[M]) fields(f Frame[M], c *protocol.Codec) Frame[M] {
	if c.Bool(&f.Ack); f.Ack {
		c.Bool(&f.Refused)
	}
	c.Uints(&f.From, &f.To)
	c.Want(!f.Refused || f.From > f.To)
	switch {
	case !w.numbered:
		c.Uint(&f.Number)
	case f.Ack:
		c.Count(&f.Number, numbers(c.To, c.From))
	default:
		c.Count(&f.Number, numbers(c.From, c.To))
	}
	if !f.Ack && (!c.Moving() || w.inner.MapMsg != nil) {
		f.Msg = w.inner.Visit(f.Msg, c)
	}
	return f
}

// kindOf is that of the message, so that those of the algorithm are counted as
// without the wrapper; the kind of ACK comes after them.
func (w *wrapped[M]) kindOf(f Frame[M]) int {
	if f.Ack {
		return len(w.inner.Messages)
	}
	return w.inner.KindOf(f.Msg)
}

func (w *wrapped[M]) ints(f Frame[M]) int {
	n := 1
	for _, v := range [...]uint64{f.From, f.To} {
		if v != 0 {
			n++
		}
	}
	if f.Ack {
		return n
	}
	return n + w.inner.Ints(f.Msg)
}

// text tells a DATA from an ACK by its end.
func (w *wrapped[M]) text(f Frame[M]) string {
	lives := ""
	if f.From != 0 || f.To != 0 {
		lives = fmt.Sprintf(" of %d to %d", f.From, f.To)
	}
	switch {
	case f.Refused:
		return fmt.Sprintf("ACK(%d refused)%s", f.Number, lives)
	case f.Ack:
		return fmt.Sprintf("ACK(%d)%s", f.Number, lives)
	}
	return fmt.Sprintf("%s seq %d%s", w.inner.Text(f.Msg), f.Number, lives)
}
