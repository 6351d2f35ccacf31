package check

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// # Symmetry
//
// Where an algorithm claims that its members are interchangeable, a permutation of
// their ids turns runs into runs. The search then visits one state of each orbit: the
// vector that is least among those of all permutations of the members that are up.
// Members that are down differ from these, and stay where they are.
//
// To try all permutations of each state would cost more than it saves. So each member
// gets a signature first, which does not depend on the names of the others: of its own
// local state, of what processes outside the group say of it, and of the messages
// from it and to it. Only members with equal signatures are tried in every order.
//
// A trace is a run with the real ids: each of its steps leads from a real state into
// the orbit that the search found.

// maxGroup is how many members can be interchangeable: their permutations are listed.
const maxGroup = 6

// A symmetry is what one worker needs to rename members.
type symmetry struct {
	perms [][]uint8 // all permutations of the group, as maps of all processes
	in    []bool    // by process: it is in the group
	rank  []uint8   // by process: its place in the group

	pins  memo[uint64]
	signs []uint64 // by process

	to    []uint8 // the permutation being tried
	used  []bool  // by process: it has a place in to
	trial []uint32
	best  []uint32
}

// interchangeable returns the members that are, or why states are not merged.
func interchangeable(a protocol.Algorithm[any], c Config, asked []string) (group []int, why string) {
	switch {
	case a.Registers != nil:
		return nil, withRegisters
	case a.Weak, a.Consensus:
		return nil, withObjects
	case a.Interchangeable == nil || a.Permute == nil:
		return nil, "members are not interchangeable"
	case !a.Interchangeable(c.Config):
		return nil, "with these options members are not interchangeable"
	}
	for _, property := range asked {
		named := func(i protocol.Invariant) bool { return i.Name == property }
		if !slices.Contains(ofStates, property) && !slices.ContainsFunc(a.Invariants, named) {
			return nil, property + " follows each process"
		}
	}
	for first := range c.N {
		var like []int
		for j := range c.N {
			if !slices.Contains(c.Down, protocol.ID(j)) && (a.Users != protocol.Members || c.alike(first, j)) {
				like = append(like, j)
			}
		}
		if len(like) > len(group) {
			group = like
		}
	}
	if len(group) < 2 || len(group) > maxGroup {
		return nil, fmt.Sprintf("%d members are interchangeable, want 2 to %d", len(group), maxGroup)
	}
	return group, ""
}

// alike reports whether what is no part of the state of two users is equal: whether their
// entries have an end, and what they may want.
func (c *Config) alike(i, j int) bool {
	if len(c.Wants) > 0 && !slices.Equal(c.Wants[i], c.Wants[j]) {
		return false
	}
	return (c.Entries[i] == Unlimited) == (c.Entries[j] == Unlimited)
}

func newSymmetry(group []int, total int) *symmetry {
	y := &symmetry{
		in: make([]bool, total), rank: make([]uint8, total), used: make([]bool, total), signs: make([]uint64, total), to: everyone(total),
	}
	for k, j := range group {
		y.in[j], y.rank[j] = true, uint8(k)
	}
	y.list(group, 0)
	y.to = everyone(total)
	return y
}

// everyone is the map that leaves each process its name.
func everyone(total int) []uint8 {
	to := make([]uint8, total)
	for i := range to {
		to[i] = uint8(i)
	}
	return to
}

// list lists the permutations that give the members of the group from place k on
// places that are free.
func (y *symmetry) list(group []int, k int) {
	if k == len(group) {
		y.perms = append(y.perms, slices.Clone(y.to))
		return
	}
	for _, j := range group {
		if !y.used[j] {
			y.used[j], y.to[j] = true, uint8(group[k])
			y.list(group, k+1)
			y.used[j] = false
		}
	}
}

// name replaces the vector being built by the least one of its orbit.
func (x *worker) name() {
	if x.sym == nil || x.raw {
		return
	}
	if x.sign(x.next); x.sorted() {
		return
	}
	x.sym.best = x.sym.best[:0]
	if x.arrange(0); !x.missing {
		x.next = append(x.next[:0], x.sym.best...)
	}
}

// sorted reports whether each member of the group has its place already, because no
// two signatures are equal.
func (x *worker) sorted() bool {
	group := x.reduction.group
	for k, j := range group[1:] {
		if x.sym.signs[group[k]] >= x.sym.signs[j] {
			return false
		}
	}
	return true
}

// arrange tries all orders of the members that have no place yet, from place k of the
// group on, in which signatures do not decrease.
func (x *worker) arrange(k int) {
	y, group := x.sym, x.reduction.group
	if k == len(group) {
		x.rename(x.next, y.to)
		if len(y.best) == 0 || slices.Compare(y.trial, y.best) < 0 {
			y.best, y.trial = y.trial, y.best
		}
		return
	}
	least, any := uint64(0), false
	for _, j := range group {
		if !y.used[j] && (!any || y.signs[j] < least) {
			least, any = y.signs[j], true
		}
	}
	for _, j := range group {
		if !y.used[j] && y.signs[j] == least && !x.missing {
			y.used[j], y.to[j] = true, uint8(group[k])
			x.arrange(k + 1)
			y.used[j] = false
		}
	}
}

// rename sets trial to st with the members renamed.
func (x *worker) rename(st []uint32, to []uint8) {
	code := uint64(0)
	for _, j := range x.reduction.group {
		code = code<<3 | uint64(x.sym.rank[to[j]])
	}
	trial := append(x.sym.trial[:0], st...)
	x.sym.trial = trial
	for i, w := range st[1 : 1+x.rules.Total] {
		if trial[1+to[i]] = w; w != 0 {
			trial[1+to[i]] = x.another(0, w, code, to)
		}
	}
	flight := trial[x.flight:]
	for k, w := range flight {
		flight[k] = x.another(1, w, code, to)
	}
	if x.fifo {
		slices.SortStableFunc(flight, func(a, b uint32) int { return x.channel(a) - x.channel(b) })
	} else {
		slices.Sort(flight)
	}
}

// another returns a local state (kind 0) or a message (kind 1) with members renamed; code
// tells permutations apart, three bits for each member of the group.
func (x *worker) another(kind uint64, w uint32, code uint64, to []uint8) uint32 {
	return once(x, &x.renamed, scramble(code<<33|kind<<32|uint64(w)), func() uint32 {
		if kind == 1 {
			return x.m.intern(int(to[x.messages.from(w)]), int(to[x.messages.to(w)]), x.m.msgs[w])
		}
		return x.intern(x.permuted(&x.locals[w], to))
	})
}

// permuted returns l with members renamed. Its state is valid until the next step.
func (x *worker) permuted(l *local, to []uint8) local {
	p := *l
	p.proc = int(to[l.proc])
	if !l.Gone {
		p.state = x.m.permute(l.proc, l.state, to)
	}
	p.End = l.Renamed(to[:x.rules.Config.N])
	return p
}

// sign computes the signatures of the group in a state.
func (x *worker) sign(st []uint32) {
	y := x.sym
	for _, j := range x.reduction.group {
		h := x.pin(0, st[1+j], j)
		for i, w := range st[1 : 1+x.rules.Total] {
			if w != 0 && !y.in[i] {
				h = scramble(h + x.pin(0, w, j))
			}
		}
		y.signs[j] = h
	}
	rank, before := uint64(0), -1
	for _, msg := range st[x.flight:] {
		if x.fifo {
			if ch := x.channel(msg); ch != before {
				rank, before = 0, ch
			} else {
				rank++
			}
		}
		for _, j := range [...]int{x.messages.from(msg), x.messages.to(msg)} {
			if y.in[j] {
				y.signs[j] += scramble(x.pin(1, msg, j) + rank)
			}
		}
	}
}

// pin returns a hash of what a local state or a message says of member j, whatever the
// names of j and of the others in its group: the least one of those under all
// permutations that give j the first place.
func (x *worker) pin(kind uint64, w uint32, j int) uint64 {
	y := x.sym
	if kind == 0 && w == 0 {
		return 0 // it is absent
	}
	key := scramble(uint64(j)<<33 | kind<<32 | uint64(w))
	if n, known := y.pins.find(key); known {
		return y.pins.values[n]
	}
	least := ^uint64(0)
	for _, to := range y.perms {
		if int(to[j]) != x.reduction.group[0] {
			continue
		}
		if kind == 1 {
			x.key = append(x.key[:0], to[x.messages.from(w)], to[x.messages.to(w)])
			x.key = x.m.a.Append(x.key, x.m.msgs[w]) // which holds no ids of members
		} else {
			x.key = appendLocal(x.key[:0], x.permuted(&x.locals[w], to))
		}
		h := fnv.New64a() // which is the same in every run of the checker
		_, _ = h.Write(x.key)
		least = min(least, scramble(h.Sum64()))
	}
	y.pins.keep(key, least)
	return least
}

// swap returns the n-th permutation of those that exchange two members of the group.
func (x *worker) swap(n int) []uint8 {
	group := x.reduction.group
	a, b := group[n%len(group)], group[(n+1+n/len(group)%(len(group)-1))%len(group)]
	to := everyone(x.rules.Total)
	to[a], to[b] = uint8(b), uint8(a)
	return to
}

// asymmetric notes that the claim of interchangeable members is false.
func (x *worker) asymmetric(format string, args ...any) {
	x.deny("its members are not interchangeable: %s", fmt.Sprintf(format, args...))
}
