package protocol

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strings"
)

// A Set is one of processes 0 to n-1, as bits. It has memory for them from the start.
type Set []uint64

// NewSet returns the empty set, with room for n processes.
func NewSet(n int) Set { return make(Set, (n+63)/64) }

// Has reports whether id is in s.
func (s Set) Has(id ID) bool { return s[id/64]>>(id%64)&1 != 0 }

// Add puts id into s.
func (s Set) Add(id ID) { s[id/64] |= 1 << (id % 64) }

// Remove takes id out of s.
func (s Set) Remove(id ID) { s[id/64] &^= 1 << (id % 64) }

// Clear takes all out of s.
func (s Set) Clear() { clear(s) }

// Len is how many are in s.
func (s Set) Len() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// After is the first process on a ring of n behind id that is not in s, or id itself where all
// others are.
func (s Set) After(id ID, n int) ID {
	j := (id + 1) % ID(n)
	for j != id && s.Has(j) {
		j = (j + 1) % ID(n)
	}
	return j
}

// All yields the processes in s in the order of their ids. The one that was yielded last may be taken
// out meanwhile.
func (s Set) All() iter.Seq[ID] {
	return func(yield func(ID) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(ID(64*i + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// Member visits whether id is in s.
func (c *Codec) Member(s Set, id ID) bool {
	in := s.Has(id)
	switch c.Bool(&in); {
	case c.does != reads:
	case in:
		s.Add(id)
	default:
		s.Remove(id)
	}
	return in
}

// Named writes processes for people: before, and then #1, #2, ..; "" where there are none.
func Named[T ~uint64](before string, ids iter.Seq[T]) (text string) {
	for id := range ids {
		text += fmt.Sprintf("%s#%d", before, id)
		before = ", "
	}
	return text
}

// Listed writes processes for people: [#1,#2], without blanks.
func Listed[T ~uint64](ids []T) string {
	return "[" + strings.ReplaceAll(Named("", slices.Values(ids)), " ", "") + "]"
}

// Set visits a set of the processes 0 to n-1.
func (c *Codec) Set(s Set, n int) {
	for i := range s {
		Upto(c, &s[i], ^uint64(0)>>max(0, 64*(i+1)-n))
	}
}
