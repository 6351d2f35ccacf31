package reliable

import (
	"encoding/binary"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// AppendState appends what a Window is to another process that goes on with the
// channel: its numbers and what is unacknowledged. No connection comes along.
func (w *Window) AppendState(b []byte) []byte {
	b = binary.AppendUvarint(b, w.seen)
	b = binary.AppendUvarint(b, w.acked)
	b = binary.AppendUvarint(b, w.most-w.acked)
	b = binary.AppendUvarint(b, uint64(len(w.ends)))
	start := w.from
	for _, end := range w.ends {
		b = binary.AppendUvarint(b, end-start)
		start = end
	}
	return append(b, w.items...)
}

// LoadState replaces the window by what AppendState wrote. An error says that no
// window within the bounds of this one is written so; nothing has changed then.
func (w *Window) LoadState(r *protocol.Reader) error {
	most, mostBytes := w.bounds()
	next := Window{MaxItems: w.MaxItems, MaxBytes: w.MaxBytes}
	next.seen, next.acked = r.Uint(), r.Uint()
	onTheirWay := r.Uint()
	items := r.Max(uint64(min(most, len(r.Rest))))
	next.ends = slices.Grow(next.ends, int(items))
	total := uint64(0)
	for range items {
		total += r.Max(uint64(mostBytes) - total)
		next.ends = append(next.ends, total)
	}
	next.sent, next.most = next.acked, next.acked+onTheirWay
	if r.Err != nil || total > uint64(len(r.Rest)) || onTheirWay > items || next.acked > next.acked+items {
		return protocol.ErrShort
	}
	next.items = slices.Clone(r.Rest[:total])
	r.Rest = r.Rest[total:]
	*w = next
	return nil
}
