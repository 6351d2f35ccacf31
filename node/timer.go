package node

import "time"

// A timer is one armed timer of one instance.
type timer struct {
	at    time.Duration // since the node's start
	inst  *instance
	next  *timer // of the same instance
	id    uint32
	index int32 // in the heap
}

// timers is a binary heap of timers, the earliest first.
type timers []*timer

// set arms a timer of an instance, again if it is armed.
func (h *timers) set(i *instance, id uint32, at time.Duration) {
	t := i.timer(id)
	if t == nil {
		t = &timer{inst: i, id: id, next: i.timers}
		i.timers = t
	} else {
		h.remove(t)
	}
	t.at = at
	h.add(t)
}

// stop takes a timer out, which is armed.
func (h *timers) stop(t *timer) {
	h.remove(t)
	place := &t.inst.timers
	for *place != t {
		place = &(*place).next
	}
	*place = t.next
}

func (h *timers) add(t *timer) {
	t.index = int32(len(*h))
	*h = append(*h, t)
	h.up(int(t.index))
}

func (h *timers) remove(t *timer) {
	last := len(*h) - 1
	i := int(t.index)
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	if cap(*h) > 1024 && last < cap(*h)/4 {
		*h = append(make(timers, 0, 2*last), *h...)
	}
	if i < last {
		h.down(i)
		h.up(i)
	}
}

func (h *timers) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if (*h)[parent].at <= (*h)[i].at {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *timers) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(*h) {
			return
		}
		if child+1 < len(*h) && (*h)[child+1].at < (*h)[child].at {
			child++
		}
		if (*h)[i].at <= (*h)[child].at {
			return
		}
		h.swap(i, child)
		i = child
	}
}

func (h *timers) swap(i, j int) {
	(*h)[i], (*h)[j] = (*h)[j], (*h)[i]
	(*h)[i].index, (*h)[j].index = int32(i), int32(j)
}
