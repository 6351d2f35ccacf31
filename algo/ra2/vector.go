package ra2

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// A Grant says that request Number of process Of was granted by invitation.
type Grant struct{ Of, Number uint32 }

// A page has grants that one leader made, in its order. A process that hears of them refers to the page
// as well, and so recognises it when others tell of it.
type page struct {
	by     protocol.ID // the leader, or nobody where grants are not to be recognised
	before uint32      // how many it made on earlier pages
	grants []Grant     // frozen where parts are of it
}

const (
	nobody   = ^protocol.ID(0)
	pageSize = 256
)

// A part of a page goes from one place of it to another, which is not included.
type part struct {
	*page
	from, to uint32
}

// Grants are what a message carries of the vector: of each process at most one grant. In
// memory they are a part of their sender's log, which may hold superseded ones as well.
type Grants struct {
	log   []part // frozen
	Count int    // of processes
}

// listed are grants to different processes, of nobody.
func listed(list []Grant) Grants {
	if len(list) == 0 {
		return Grants{}
	}
	return Grants{[]part{{&page{by: nobody, grants: list}, 0, uint32(len(list))}}, len(list)}
}

// List returns the grants, in the order of processes.
func (g Grants) List() []Grant {
	var list []Grant
	for _, r := range g.log {
		list = append(list, r.grants[r.from:r.to]...)
	}
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
//
// Where many processes tell each other, nearly all that one hears is old. But it was made by
// few leaders, many grants each, and so the log is of parts of their pages: a process that has heard of
// a leader's grants up to some number passes over a part of them without a look at each.
type vector struct {
	numbers []uint32 // by process: of its request, 0: none
	full    bool     // messages carry all of it

	log    []part   // changes, oldest first
	frozen int      // how much of it messages may point to
	live   []uint32 // by place in the log: of how many processes it has the newest change
	at     []uint32 // by process with a number: that place
	told   []uint32 // by process: how much of the log has been told to it; 0 where full

	// No state, but what saves work: after LoadState nothing is known, and nobody recognises
	// what this process makes. Invariant, on FIFO channels: numbers have the first known[j]
	// grants that j made, or later ones.
	known []uint32
	self  protocol.ID // or nobody
	made  uint32      // grants
	page  *page       // with the last of them

	memory []part   // for the next logs
	moved  []uint32 // compact: by old place in the log, the new one
}

func newVector(self protocol.ID, n int, full bool) vector {
	v := vector{
		numbers: make([]uint32, n), full: full, known: make([]uint32, n), self: self,
		live: make([]uint32, 2*n), moved: make([]uint32, 2*n+1), at: make([]uint32, n), told: make([]uint32, n),
	}
	v.renew()
	return v
}

// renew begins an empty log, in memory that no message points to. There is room for twice
// as many parts as there are processes.
func (v *vector) renew() {
	size := 2 * len(v.numbers)
	if len(v.memory) < size {
		v.memory = make([]part, size*max(1, 512/size))
	}
	v.log, v.memory = v.memory[:0:size], v.memory[size:]
	v.frozen = 0
}

// forget is for a state that is loaded, of which others have heard more or less.
func (v *vector) forget() {
	clear(v.known)
	if v.self != nobody {
		v.self, v.made = nobody, 0 // another page begins
	}
	v.renew()
}

// compact forgets parts that are superseded. Because it leaves at most n, and comes after at
// least n more, it costs a change a constant.
func (v *vector) compact() {
	old := v.log
	v.renew()
	for place, r := range old {
		now := len(v.log)
		v.moved[place] = uint32(now)
		if live := v.live[place]; live > 0 {
			v.live[now] = live
			v.log = append(v.log, r)
		}
	}
	v.frozen = len(v.log)
	v.moved[len(old)] = uint32(v.frozen)
	for j := range v.told {
		v.told[j], v.at[j] = v.moved[v.told[j]], v.moved[v.at[j]]
	}
}

// append puts grant i of a page into the log, of whose process none there is live.
func (v *vector) append(g *page, i uint32) {
	place := len(v.log) - 1
	if place >= v.frozen && v.log[place].page == g && v.log[place].to == i {
		v.log[place].to++
	} else {
		place++
		v.log = append(v.log, part{g, i, i + 1})
		v.live[place] = 0
	}
	v.live[place]++
	v.at[g.grants[i].Of] = uint32(place)
}

// set makes a change, which is grant i of a page.
func (v *vector) set(g *page, i uint32) {
	if len(v.log) == cap(v.log) {
		v.compact()
	}
	c := g.grants[i]
	if v.numbers[c.Of] != 0 {
		v.live[v.at[c.Of]]--
	}
	v.numbers[c.Of] = c.Number
	v.append(g, i)
}

// write puts a grant of this process on a page.
func (v *vector) write(c Grant) (g *page, i uint32) {
	if i = v.made % pageSize; i == 0 {
		if v.made > math.MaxUint32-pageSize {
			v.self = nobody // they are counted with 32 bits
		}
		v.page = &page{v.self, v.made, make([]Grant, pageSize)}
	}
	v.made++
	v.page.grants[i] = c
	return v.page, i
}

// merge takes the maximum, entry by entry, of what is not known.
func (v *vector) merge(g Grants) {
	for _, r := range g.log {
		if r.by != nobody {
			made := r.before + r.to
			if made <= v.known[r.by] {
				continue
			}
			v.known[r.by] = made
		}
		for i := r.from; i < r.to; i++ {
			if c := r.grants[i]; c.Number > v.numbers[c.Of] {
				v.set(r.page, i)
			}
		}
	}
}

// tell returns what a message to j carries.
func (v *vector) tell(j protocol.ID) Grants {
	from, to := int(v.told[j]), len(v.log)
	v.frozen = to
	if !v.full {
		v.told[j] = uint32(to)
	}
	return Grants{v.log[from:to:to], v.count(from, to)}
}

// count is how many processes have their newest change between two places of the log.
func (v *vector) count(from, to int) int {
	n := uint32(0)
	for _, live := range v.live[from:to] {
		n += live
	}
	return int(n)
}
