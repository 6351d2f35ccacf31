package sim

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
)

const kindBits = 4

// An item is one future event. It holds no pointer, so that the collector never
// scans the queue.
type item struct {
	at       int64  // virtual ns
	key      uint64 // sequence number, and the kind in its low bits
	to, slot uint32
}

func (a *item) before(b *item) bool { return a.at < b.at || a.at == b.at && a.key < b.key }

// A queue is a heap in which node i has the children 4i+1 to 4i+4: half as deep
// as a binary one, and the children of one node share a cache line or two.
type queue []item

func (q *queue) push(x item) {
	*q = append(*q, x)
	h := *q
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

func (q *queue) pop() item {
	h := *q
	first := h[0]
	n := len(h) - 1
	x := h[n]
	*q = h[:n]
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
