package sim

import (
	"math"
	"time"
)

// What an item of the queue makes happen.
const (
	deliver    uint64 = iota // slot: message, to: process
	broadcast                // slot: message, to every member but its sender
	timeout                  // slot: index of the timer, to: process
	userTry                  // to: user
	userExit                 // to: user
	birth                    // to: user, whose next process starts
	fault                    // slot: index of the scheduled step
	amnesias                 // the next random memory loss, and so on
	crashes                  //
	pauses                   //
	partitions               //
	lapse                    // to: client, slot: member
	suspect                  // to: process, slot: whom it suspects
	restore                  // to: client, slot: member, after a lapse
	news                     // to: client, slot: member, after a memory loss
	access                   // to: process, slot: register
	recoveries               // the next random recovery
	hear                     // to: process, slot: the low bits of the instance of consensus
	wake                     // to: process, whose pause may be over
	userDown                 // to: user
)

const kindBits = 5

// An item is one future event. It holds no pointer, so that the collector never
// scans the queue.
type item struct {
	at       int64  // virtual ns
	key      uint64 // sequence number, and the kind in its low bits
	to, slot uint32
}

func (a *item) before(b *item) bool { return a.at < b.at || a.at == b.at && a.key < b.key }

// A queue gives its items in order. Messages with a constant delay come in the
// order in which they are sent, and go through the lane. Those with random delays,
// and whatever else is due soon, go through the wheel; all other items through a
// heap in which node i has the children 4i+1 to 4i+4: half as deep as a binary one,
// and the children of one node share a cache line or two.
type queue struct {
	heap  []item
	lane  []item // a ring; its size is 0 or a power of two
	head  uint64 // number of items ever taken from the lane
	tail  uint64 // and put in
	even  bool   // delays are constant: there is a lane, and no wheel
	wheel wheel
	last  int64 // when the last item taken was due
}

func (q *queue) len() int { return len(q.heap) + int(q.tail-q.head) + q.wheel.len() }

// reset empties q for messages of that mean delay between so many processes; even: all
// have the same.
func (q *queue) reset(mean time.Duration, even bool, processes int) {
	q.heap, q.head, q.tail, q.last = q.heap[:0], 0, 0, 0
	q.even = even
	q.wheel.reset(int64(mean), processes)
}

// all yields all items, in no order.
func (q *queue) all(yield func(item) bool) {
	for k := q.head; k < q.tail; k++ {
		if !yield(q.lane[k&uint64(len(q.lane)-1)]) {
			return
		}
	}
	for _, list := range [][]item{q.heap, q.wheel.front} {
		for _, x := range list {
			if !yield(x) {
				return
			}
		}
	}
	for k := 0; q.wheel.count > 0 && k < slots; k++ {
		for i := q.wheel.heads[k]; i != 0; i = q.wheel.below[i] {
			if !yield(q.wheel.items[i]) {
				return
			}
		}
	}
}

// follow puts in an item that comes before none that followed earlier.
func (q *queue) follow(x item) {
	if q.tail-q.head == uint64(len(q.lane)) {
		q.widen()
	}
	q.lane[q.tail&uint64(len(q.lane)-1)] = x
	q.tail++
}

// widen makes the lane twice as large.
func (q *queue) widen() {
	size := uint64(len(q.lane))
	lane := make([]item, max(64, 2*size))
	if size > 0 {
		k := q.head & (size - 1)
		copy(lane[copy(lane, q.lane[k:]):], q.lane[:k])
	}
	q.lane, q.head, q.tail = lane, 0, size
}

// push puts in an item that is not due before the last one taken.
func (q *queue) push(x item) {
	if !q.even && q.wheel.put(x, q.last) {
		return
	}
	q.heap = append(q.heap, x)
	h := q.heap
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !x.before(&h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = x
}

// pop takes the first item. There must be one.
func (q *queue) pop() item {
	x := q.take()
	q.last = x.at
	return x
}

func (q *queue) take() item {
	if q.even {
		if q.head < q.tail {
			first := &q.lane[q.head&uint64(len(q.lane)-1)]
			if len(q.heap) == 0 || first.before(&q.heap[0]) {
				q.head++
				return *first
			}
		}
		return q.popHeap()
	}
	limit := int64(math.MaxInt64)
	if len(q.heap) > 0 {
		limit = q.heap[0].at
	}
	if first := q.wheel.first(limit); first != nil && (len(q.heap) == 0 || first.before(&q.heap[0])) {
		x := *first
		q.wheel.take()
		return x
	}
	return q.popHeap()
}

func (q *queue) popHeap() item {
	h := q.heap
	first := h[0]
	n := len(h) - 1
	x := h[n]
	q.heap = h[:n]
	h = h[:n]
	for i := 0; ; {
		child := 4*i + 1
		if child >= n {
			if n > 0 {
				h[i] = x
			}
			return first
		}
		least := child
		for c := child + 1; c < min(child+4, n); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&x) {
			h[i] = x
			return first
		}
		h[i] = h[least]
		i = least
	}
}
