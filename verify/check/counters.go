package check

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// normal gives the vector being built its normal form.
func (x *worker) normal() {
	x.forget(nobody)
	x.lower()
	x.name()
}

// lower subtracts from all values of a counter what moves its smallest one down
// to Counter.Least, in the vector being built.
func (x *worker) lower() {
	if !x.shifts || x.raw {
		return
	}
	st := x.next
	x.by = slices.Grow(x.by[:0], len(x.messages.least))[:len(x.messages.least)]
	for k := range x.by {
		x.by[k] = math.MaxUint64
	}
	for i, w := range st[1:] {
		if w == 0 {
			continue
		}
		for _, l := range x.lowsOf(i, w) {
			x.by[l.counter] = min(x.by[l.counter], l.value)
		}
	}
	moves := false
	for k, least := range x.messages.least {
		if v := x.by[k]; v == math.MaxUint64 || v <= least {
			x.by[k] = 0
		} else {
			x.by[k] = v - least
			moves = true
		}
	}
	if x.shifting = moves; !moves {
		return
	}
	for i, w := range st[1:] {
		if w != 0 {
			st[1+i] = x.shift(i, w)
		}
	}
	if !x.fifo {
		slices.Sort(st[x.flight:])
	}
}

// lowsOf returns the lows of word i of a state, after the first one.
func (x *worker) lowsOf(i int, w uint32) []low {
	if i >= x.rules.Total {
		return x.messages.lows[w]
	}
	return x.locals[w].lows
}

// shifted remembers words that were moved: by the kind of the word, its number, and
// the number of what its counters are moved by.
type shifted struct {
	to [2]memo[uint32] // of local states, and of messages
	by map[string]uint32
}

// A distance of one counter is a number of its own below this one.
const manyCounters = 1 << 31

func (s *shifted) bytes() int64 {
	return s.to[0].size() + s.to[1].size() + int64(120*len(s.by))
}

// shift moves word i of a state by x.by.
func (x *worker) shift(i int, w uint32) uint32 {
	lows := x.lowsOf(i, w)
	moves := uint64(0)
	for _, l := range lows {
		moves |= x.by[l.counter]
	}
	if moves == 0 {
		return w
	}
	by := moves
	if len(lows) > 1 || by >= manyCounters {
		x.key = x.key[:0]
		for _, l := range lows {
			x.key = binary.AppendUvarint(x.key, x.by[l.counter])
		}
		n, known := x.shifted.by[string(x.key)]
		if !known && !x.adds() {
			return 0
		} else if !known {
			n = uint32(len(x.shifted.by))
			x.shifted.by[string(x.key)] = n
		}
		by = manyCounters | uint64(n)
	}
	kind := 0
	if i >= x.rules.Total {
		kind = 1
	}
	return once(x, &x.shifted.to[kind], scramble(uint64(w)<<32|by), func() uint32 {
		if kind == 1 {
			ch, m := x.m.channel(w), x.m.msgs[w]
			x.m.a.MapMsg(ch, &m, x.lowered)
			return x.m.intern(int(ch.From), int(ch.To), m)
		}
		l := x.locals[w]
		p := x.m.load(l.proc, l.state)
		x.m.a.MapState(p, x.lowered)
		l.state = x.m.encode(p)
		return x.intern(l)
	})
}

// lowered is a value of a counter, moved by x.by.
func (x *worker) lowered(c protocol.Counter, v uint64) uint64 { return v - x.by[x.m.counters[c]] }

// note keeps which counters a move begins: those in its end, or in what it sends, of which
// neither the local state that it was made from nor the message has a value.
func (x *worker) note(m *move, local, msg []low) {
	if m.begun = (span{uint32(len(x.begun)), uint32(len(x.begun))}); !x.shifts {
		return
	}
	add := func(lows []low) {
		for _, l := range lows {
			same := func(b low) bool { return b.counter == l.counter }
			if !slices.ContainsFunc(local, same) && !slices.ContainsFunc(msg, same) {
				x.begun = append(x.begun, l.counter)
			}
		}
	}
	add(x.locals[m.to].lows)
	for _, sent := range x.sends(m) {
		add(x.messages.lows[sent])
	}
	m.begun.to = uint32(len(x.begun))
}

// unrelated reports whether the counters that move m of process p begins have no values
// elsewhere in st. They had: were all values moved, a step that knows nothing of them would
// set the same one, at another distance.
func (x *worker) unrelated(m *move, p int, st []uint32) bool {
	if len(x.anew(m)) == 0 || x.raw || x.reduction.believes {
		return true
	}
	for i, w := range st[1:] {
		if i == p || w == 0 {
			continue
		}
		for _, l := range x.lowsOf(i, w) {
			if slices.Contains(x.anew(m), l.counter) {
				return false
			}
		}
	}
	return true
}

// realFinding says with the real names and counters what the state at the end of a trace
// violates.
func (r *searcher) realFinding() {
	if r.claim != nil {
		return // there is no such run
	}
	f := r.violates(r.worker, r.last)
	if f.Property == r.found.Property {
		r.found.Fault = f
		return
	}
	claim := onlyMoved
	if r.sym != nil {
		claim = onlyRenamed
	}
	r.deny(claim+"%s is violated: %s", r.found.Property, r.found.Text)
}

// lift lets invariants and unsettled see the values of all counters moved up, by distances of
// their own, until it is called again.
func (d *machine) lift(up bool) {
	d.lifted = up
	clear(d.loaded)
}

func (d *machine) up(c protocol.Counter, v uint64) uint64 {
	k := d.counters[c]
	return v + 100*uint64(k+1)
}
