package node

import (
	"container/heap"
	"time"
)

// A timer is one armed timer of one instance.
type timer struct {
	at    time.Duration // since the node's start
	inst  *instance
	next  *timer // of the same instance
	id    uint32
	index int32 // in the heap
}

// timers is a heap of timers, the earliest first.
type timers []*timer

// set arms a timer of an instance, again if it is armed.
func (h *timers) set(i *instance, id uint32, at time.Duration) {
	if t := i.timer(id); t != nil {
		t.at = at
		heap.Fix(h, int(t.index))
		return
	}
	i.timers = &timer{inst: i, id: id, next: i.timers, at: at}
	heap.Push(h, i.timers)
}

// long is for how long a timer runs that may be a little late.
const long = 10 * time.Second

// together is when a timer ends that runs for so long and is to end then. Long ones of many locks end together, a 256th of their time late
// at most: each would wake its loop otherwise, and fill a frame of its own.
func together(at, after time.Duration) time.Duration {
	if after < long {
		return at
	}
	grain := after / 256
	return (at + grain - 1) / grain * grain
}

// due reports whether a timer is to fire.
func (h timers) due(now time.Duration) bool { return len(h) > 0 && h[0].at <= now }

// stop takes a timer out, which is armed.
func (h *timers) stop(t *timer) {
	h.remove(t)
	place := &t.inst.timers
	for *place != t {
		place = &(*place).next
	}
	*place = t.next
}

func (h *timers) remove(t *timer) {
	heap.Remove(h, int(t.index))
	if last := len(*h); cap(*h) > 1024 && last < cap(*h)/4 {
		*h = append(make(timers, 0, 2*last), *h...)
	}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h *timers) Len() int           { return len(*h) }
func (h *timers) Less(i, j int) bool { return (*h)[i].at < (*h)[j].at }

func (h *timers) Swap(i, j int) {
	t, u := (*h)[i], (*h)[j]
	(*h)[i], (*h)[j] = u, t
	t.index, u.index = int32(j), int32(i)
}

func (h *timers) Push(t any) {
	t.(*timer).index = int32(len(*h))
	*h = append(*h, t.(*timer))
}

func (h *timers) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}
