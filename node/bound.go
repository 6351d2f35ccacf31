package node

import "time"

// noteClockBound warns, once for each value, that a peer has another clock bound. It is
// no reason to refuse: each server's tokens rest on its own bound, which must be true and
// not smaller than the one of its last life; what a client has only says how long it
// waits. And a bound must be changed at one process after the other.
func (n *Node) noteClockBound(who, peer string, theirs time.Duration) {
	mine := n.c.ClockBound
	if mine == 0 || theirs == 0 || theirs == mine || n.bound.Swap(int64(theirs)) == int64(theirs) {
		return
	}
	n.book.warn(who, "the other end has another clock bound", "peer", peer, "mine", mine, "theirs", theirs)
}
