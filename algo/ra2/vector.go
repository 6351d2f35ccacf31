package ra2

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// A Grant says that request Number of process Of was granted by invitation.
type Grant struct{ Of, Number uint32 }

// Grants are what a message carries of the vector: of each process at most one grant. In
// memory they are a part of their sender's log, which may hold superseded ones as well.
type Grants struct {
	log   []Grant // frozen
	Count int     // of processes
}

// List returns the grants, in the order of processes.
func (g Grants) List() []Grant {
	ascending := true
	for i := 1; i < len(g.log); i++ {
		ascending = ascending && g.log[i-1].Of < g.log[i].Of
	}
	if ascending {
		return g.log
	}
	list := slices.Clone(g.log)
	slices.SortFunc(list, func(a, b Grant) int { return cmp.Or(cmp.Compare(a.Of, b.Of), -cmp.Compare(a.Number, b.Number)) })
	return slices.CompactFunc(list, func(a, b Grant) bool { return a.Of == b.Of })
}

// String writes processes as in Algorithm.Text.
func (g Grants) String() string {
	var parts []string
	for _, c := range g.List() {
		parts = append(parts, fmt.Sprintf("#%d:%d", c.Of, c.Number))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// A vector holds for each process the newest of its requests that is known to be granted by
// invitation. It tells others the differences only, as Singhal and Kshemkalyani do: an entry
// is told to a process if it changed after the last message to that process. The two
// counters that they keep for each process are positions in a log of changes, of which a
// message carries a part, so that to tell many costs what changed, once.
type vector struct {
	numbers []uint32 // by process: of its request, 0: none
	full    bool     // messages carry all of it

	log  []Grant  // changes, oldest first; frozen, because messages point to it
	live set      // the places in log that hold the newest change of a process
	at   []uint32 // by process with a number: that place
	told []uint32 // by process: how much of the log has been told to it; 0 where full

	memory []Grant // for the next logs
	spare  set     // for the next live
}

func newVector(n int, full bool) vector {
	v := vector{
		numbers: make([]uint32, n), full: full,
		live: newSet(4 * n), spare: newSet(4 * n), at: make([]uint32, n), told: make([]uint32, n),
	}
	v.renew()
	return v
}

// renew begins an empty log, in memory that no message points to. There is room for four
// times as many changes as there are processes.
func (v *vector) renew() {
	size := 4 * len(v.numbers)
	if len(v.memory) < size {
		v.memory = make([]Grant, max(size, 512))
	}
	v.log, v.memory = v.memory[:0:size], v.memory[size:]
	v.live.clear()
}

// compact forgets superseded changes. Because it leaves at most n, and comes after at least
// 3n more, it costs a change a constant.
func (v *vector) compact() {
	old := v.log
	for j, told := range v.told {
		v.told[j] = uint32(v.live.count(0, int(told)))
	}
	v.live, v.spare = v.spare, v.live
	v.renew()
	for place, c := range old {
		if v.spare.has(protocol.ID(place)) {
			v.append(c)
		}
	}
}

// append puts a change into the log, whose process has none there that is live.
func (v *vector) append(c Grant) {
	place := len(v.log)
	v.log = append(v.log, c)
	v.live.add(protocol.ID(place))
	v.at[c.Of] = uint32(place)
}

// set makes a change.
func (v *vector) set(c Grant) {
	if len(v.log) == cap(v.log) {
		v.compact()
	}
	if v.numbers[c.Of] != 0 {
		v.live.remove(protocol.ID(v.at[c.Of]))
	}
	v.numbers[c.Of] = c.Number
	v.append(c)
}

// merge takes the maximum, entry by entry.
func (v *vector) merge(g Grants) {
	for _, c := range g.log {
		if c.Number > v.numbers[c.Of] {
			v.set(c)
		}
	}
}

// tell returns what a message to j carries.
func (v *vector) tell(j protocol.ID) Grants {
	from, to := int(v.told[j]), len(v.log)
	if !v.full {
		v.told[j] = uint32(to)
	}
	return Grants{v.log[from:to:to], v.live.count(from, to)}
}

// A set is one of small numbers, as bits.
type set []uint64

func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) has(i protocol.ID) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s set) add(i protocol.ID)      { s[i/64] |= 1 << (i % 64) }
func (s set) remove(i protocol.ID)   { s[i/64] &^= 1 << (i % 64) }
func (s set) clear()                 { clear(s) }

// count is how many there are from one number to another, which is not included.
func (s set) count(from, to int) int {
	n := 0
	for i := from / 64; i*64 < to; i++ {
		w := s[i]
		if i == from/64 {
			w = w >> (from % 64) << (from % 64)
		}
		if beyond := i*64 + 64 - to; beyond > 0 {
			w <<= beyond
		}
		n += bits.OnesCount64(w)
	}
	return n
}
