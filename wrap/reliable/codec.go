package reliable

import "github.com/poundlock/poundlock/protocol"

// State visits what a Window is to another process that goes on with the channel: its
// numbers and what is unacknowledged. No connection comes along. Nothing is read that
// exceeds the bounds of this window.
func (w *Window) State(c *protocol.Codec) {
	most, mostBytes := w.bounds()
	if c.Reading() {
		w.from = 0
	}
	end, underWay := w.from, w.most-w.acked
	c.Uints(&w.seen, &w.acked, &underWay)
	for i := range protocol.List(c, &w.ends) {
		size := w.ends[i] - end
		protocol.Upto(c, &size, uint64(mostBytes)-(end-w.from))
		if end += size; c.Reading() {
			w.ends[i] = end
		}
	}
	c.Raw(&w.items, int(end-w.from))
	if c.Reading() {
		w.sent, w.most = w.acked, w.acked+underWay
		items := uint64(len(w.ends))
		c.Want(len(w.ends) <= most && underWay <= items && w.acked <= w.acked+items)
	}
}
