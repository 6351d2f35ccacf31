package check

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// normal gives the vector being built its normal form. A frozen worker may not know
// it: then it returns false, and the vector is spoilt.
func (x *worker) normal() bool { return x.drop(nobody) && x.lower() && x.name() }

// lower subtracts from all values of a counter what moves its smallest one down
// to Counter.Least, in the vector being built. A frozen worker may not know the
// result: then it returns false, and the vector is spoilt.
func (x *worker) lower() bool {
	if !x.shifts || x.raw {
		return true
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
		return true
	}
	for i, w := range st[1:] {
		if w != 0 {
			n, known := x.shift(i, w)
			if !known {
				return false
			}
			st[1+i] = n
		}
	}
	if !x.fifo {
		slices.Sort(st[x.flight:])
	}
	return true
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
	table [2]table // of local states, and of messages
	to    [2][]uint32
	by    map[string]uint32
}

// A distance of one counter is a number of its own below this one.
const manyCounters = 1 << 31

func (s *shifted) bytes() int64 {
	return s.table[0].bytes + s.table[1].bytes + int64(4*(cap(s.to[0])+cap(s.to[1]))+120*len(s.by))
}

// shift moves word i of a state by x.by.
func (x *worker) shift(i int, w uint32) (to uint32, known bool) {
	lows := x.lowsOf(i, w)
	moves := uint64(0)
	for _, l := range lows {
		moves |= x.by[l.counter]
	}
	if moves == 0 {
		return w, true
	}
	by := moves
	if len(lows) > 1 || by >= manyCounters {
		x.key = x.key[:0]
		for _, l := range lows {
			x.key = binary.AppendUvarint(x.key, x.by[l.counter])
		}
		n, known := x.shifted.by[string(x.key)]
		if !known && x.frozen {
			return 0, false
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
	key := scramble(uint64(w)<<32 | by)
	if n, known := x.shifted.table[kind].find(key); known || x.frozen {
		if !known {
			return 0, false
		}
		return x.shifted.to[kind][n], true
	}
	if kind == 1 {
		to = x.m.shiftMessage(w, x.by)
	} else {
		l := x.locals[w]
		l.state = x.m.shift(l.proc, l.state, x.by)
		to, _ = x.intern(l)
	}
	x.shifted.table[kind].add(key)
	x.shifted.to[kind] = append(x.shifted.to[kind], to)
	return to, true
}

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

// deny notes that a begins counters of which others have values.
func (x *worker) deny(a action) {
	if x.claim == nil {
		x.claim = fmt.Errorf("%w: %s: after %q a counter begins of which others have values: its distance to them is none",
			ErrClaim, x.rules.Info.Name, x.line(a, x.m))
	}
}

// steady verifies on a state that was judged that what judges states depends on
// distances of counters only.
func (r *searcher) steady(st []uint32) {
	if !r.judges() {
		return
	}
	g := r.look(st)
	unsettled := r.m.unsettled(g)
	r.m.lift(true)
	defer r.m.lift(false)
	if r.m.unsettled(g) != unsettled {
		r.unsteady("other losses are unsettled", nil)
	}
	for _, name := range r.invariants {
		if err := r.m.invariant(name, g); err != nil {
			r.unsteady(name+" is violated", err)
		}
	}
}

func (r *searcher) unsteady(what string, err error) {
	if r.claim == nil {
		r.claim = fmt.Errorf("%w: %s: with counters moved only, %s: %v", ErrClaim, r.rules.Info.Name, what, err)
	}
}

// judges reports whether the algorithm says something of states that was asked for.
func (r *searcher) judges() bool { return len(r.invariants) > 0 || r.kept || r.spaced > 0 }

// realFinding says with the real names and counters what the state at the end of a trace
// violates.
func (r *searcher) realFinding() {
	if r.claim != nil {
		return // there is no such run
	}
	property, err := r.violates(r.worker, r.last)
	switch {
	case property == r.found.property:
		r.found.err = err
	case r.sym != nil:
		r.asymmetric("%s is violated with some of them exchanged only: %v", r.found.property, r.found.err)
	default:
		r.unsteady(r.found.property+" is violated", r.found.err)
	}
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
