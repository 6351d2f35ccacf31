package sim

import (
	"math/bits"
	"slices"
)

// A wheel gives the items of the near future in order. Time is cut into slots of
// equal width, of which the wheel has a limited number; an item costs a few
// instructions to throw into the list of its slot, and is sorted among the few
// items of that slot only when its slot has come. A heap would compare it with
// others on its way up and down, and mispredict half of the branches.
//
// Invariant: front holds what is due up to the end of slot turned, latest first, and
// the lists hold what is due in the slots that follow it.
type wheel struct {
	shift  uint   // a slot is 1<<shift ns wide
	turned int64  // the number of the slot in front, counted from time 0
	front  []item // sorted
	count  int    // items in the lists

	heads [slots]uint32 // by slot number modulo slots: the last one put in, 0 if none
	full  [slots / 64]uint64
	items []item   // of the lists; 0 is not used
	below []uint32 // of each item: the one put in before, 0: none. Apart, because who follows a list waits for them
	free  uint32   // first unused item, 0 if none
}

// A mean delay is at least as many slots as there are processes, within these bounds,
// and less than twice as many: about so many messages are on their way at a time. So
// the wheel holds at least four means, and nearly all delays that are drawn.
const (
	slots     = 4096
	leastMean = 16
	mostMean  = slots / 8
)

// A crowd is as many items in front as a heap sorts faster.
const crowd = 64

// reset empties w for delays of the given mean between so many processes.
func (w *wheel) reset(mean int64, processes int) {
	if w.count > 0 {
		w.heads, w.full = [slots]uint32{}, [slots / 64]uint64{}
	}
	w.shift = uint(max(0, bits.Len64(uint64(mean)/uint64(min(max(leastMean, processes), mostMean)))-1))
	w.turned, w.front, w.count, w.free = 0, w.front[:0], 0, 0
	w.items, w.below = append(w.items[:0], item{}), append(w.below[:0], 0)
}

func (w *wheel) len() int { return len(w.front) + w.count }

// put takes an item in, unless it is too far in the future, or due so soon that it
// would have to find its place in a crowd. Nothing is due before now.
func (w *wheel) put(x item, now int64) bool {
	if w.len() == 0 {
		w.turned = now >> w.shift
	}
	slot := x.at >> w.shift
	switch {
	case slot >= w.turned+slots, slot <= w.turned && len(w.front) >= crowd:
		return false
	case slot <= w.turned:
		w.insert(x)
		return true
	}
	i := w.free
	if i == 0 {
		i = uint32(len(w.items))
		w.items, w.below = append(w.items, item{}), append(w.below, 0)
	} else {
		w.free = w.below[i]
	}
	k := slot & (slots - 1)
	w.items[i], w.below[i] = x, w.heads[k]
	w.heads[k] = i
	w.full[k/64] |= 1 << (k % 64)
	w.count++
	return true
}

// insert puts an item of the slot in front, or of an earlier one, into its place.
func (w *wheel) insert(x item) {
	f := append(w.front, x)
	i := len(f) - 1
	for ; i > 0 && f[i-1].before(&x); i-- {
		f[i] = f[i-1]
	}
	f[i] = x
	w.front = f
}

// first returns the first item, to be taken by take. It is nil when there is none,
// or when nothing is due before the slot of time limit has passed.
func (w *wheel) first(limit int64) *item {
	if len(w.front) == 0 {
		if w.count == 0 {
			return nil
		}
		next := w.next()
		if next > limit>>w.shift {
			return nil
		}
		w.turn(next)
	}
	return &w.front[len(w.front)-1]
}

func (w *wheel) take() { w.front = w.front[:len(w.front)-1] }

// next is the number of the first slot whose list is not empty.
func (w *wheel) next() int64 {
	for slot := w.turned + 1; ; slot = slot&^63 + 64 {
		k := uint64(slot) & (slots - 1)
		if set := w.full[k/64] >> (k % 64); set != 0 {
			return slot + int64(bits.TrailingZeros64(set))
		}
	}
}

// turn brings a slot to the front, which is empty.
func (w *wheel) turn(slot int64) {
	w.turned = slot
	k := slot & (slots - 1)
	i := w.heads[k]
	w.heads[k] = 0
	w.full[k/64] &^= 1 << (k % 64)
	const few = 16 // are inserted faster than sorted
	for i != 0 {
		if len(w.front) < few {
			w.insert(w.items[i])
		} else {
			w.front = append(w.front, w.items[i])
		}
		w.count--
		i, w.below[i], w.free = w.below[i], w.free, i
	}
	if len(w.front) > few {
		slices.SortFunc(w.front, func(a, b item) int {
			if b.before(&a) {
				return -1
			}
			return 1
		})
	}
}
