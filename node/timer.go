package node

import (
	"container/heap"
	"math"
	"time"
)

// A timer is one armed timer of one instance.
type timer struct {
	at     time.Duration // since the node's start
	inst   *instance
	next   *timer // of the same instance
	id     uint32
	index  int32  // in the heap, if it is there
	before *timer // in its line; nil: it is in the heap
	behind *timer
}

// timers are those of a loop. Long ones that run for as long as each other end in the order in which they were set, and so there is a line for
// them; all others are in a heap, where each costs the more the more there are.
type timers struct {
	heap  timerHeap
	lines []*line
	spare *timer // one that was stopped: the next one is set soon; nil: none
}

// A line is a ring of timers, the earliest first, from its end on, which is no timer.
type line struct {
	after time.Duration // for so long they run
	end   timer
}

// mostLines is how many lines there are at most. Nearly all long timers are one of two.
const mostLines = 8

// set arms a timer of an instance, again if it is armed. It runs for so long, 0: nobody knows for how long.
func (h *timers) set(i *instance, id uint32, at, after time.Duration) {
	t := i.timer(id)
	switch {
	case t == nil:
		if t = h.spare; t == nil {
			t = new(timer)
		}
		h.spare = nil
		t.inst, t.id, t.next = i, id, i.timers
		i.timers = t
	case t.at == at: // often: see together
		return
	default:
		h.remove(t)
	}
	t.at = at
	if x := h.line(at, after); x != nil {
		last := x.end.before
		t.before, t.behind = last, &x.end
		last.behind, x.end.before = t, t
		return
	}
	heap.Push(&h.heap, t)
}

// line is the one whose end a timer may join; nil: there is none.
func (h *timers) line(at, after time.Duration) (found *line) {
	if after < long {
		return nil
	}
	for _, x := range h.lines {
		switch empty := x.end.behind == &x.end; {
		case x.after == after && (empty || x.end.before.at <= at):
			return x
		case x.after == after:
			return nil // never: the clock only goes on
		case empty:
			found = x
		}
	}
	if found == nil && len(h.lines) < mostLines {
		found = new(line)
		found.end.before, found.end.behind = &found.end, &found.end
		h.lines = append(h.lines, found)
	}
	if found != nil {
		found.after = after
	}
	return found
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

// first is the timer that fires next, nil: there is none.
func (h *timers) first() (t *timer) {
	if len(h.heap) > 0 {
		t = h.heap[0]
	}
	for _, x := range h.lines {
		if f := x.end.behind; f != &x.end && (t == nil || f.at < t.at) {
			t = f
		}
	}
	return t
}

// never is when a timer ends that there is none of.
const never = time.Duration(math.MaxInt64)

// next is when the next timer fires.
func (h *timers) next() time.Duration {
	if t := h.first(); t != nil {
		return t.at
	}
	return never
}

// stop takes a timer out, which is armed. Its memory may be that of another one from now on.
func (h *timers) stop(t *timer) {
	h.remove(t)
	place := &t.inst.timers
	for *place != t {
		place = &(*place).next
	}
	*place = t.next
	t.inst, t.next = nil, nil
	h.spare = t
}

func (h *timers) remove(t *timer) {
	if t.before != nil {
		t.before.behind, t.behind.before = t.behind, t.before
		t.before, t.behind = nil, nil
		return
	}
	heap.Remove(&h.heap, int(t.index))
	if last := len(h.heap); cap(h.heap) > 1024 && last < cap(h.heap)/4 {
		h.heap = append(make(timerHeap, 0, 2*last), h.heap...)
	}
}

// timerHeap is a heap of timers, the earliest first.
type timerHeap []*timer

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h *timerHeap) Len() int           { return len(*h) }
func (h *timerHeap) Less(i, j int) bool { return (*h)[i].at < (*h)[j].at }

func (h *timerHeap) Swap(i, j int) {
	t, u := (*h)[i], (*h)[j]
	(*h)[i], (*h)[j] = u, t
	t.index, u.index = int32(j), int32(i)
}

func (h *timerHeap) Push(t any) {
	t.(*timer).index = int32(len(*h))
	*h = append(*h, t.(*timer))
}

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}
