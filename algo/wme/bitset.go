package wme

import (
	"encoding/binary"
	"math/bits"

	"github.com/poundlock/poundlock/protocol"
)

// A bitset is a set of processes, of a fixed size.
type bitset []uint64

func newSet(n int) bitset { return make(bitset, (n+63)/64) }

func (s bitset) has(id protocol.ID) bool { return s[id/64]>>(id%64)&1 == 1 }
func (s bitset) add(id protocol.ID)      { s[id/64] |= 1 << (id % 64) }
func (s bitset) remove(id protocol.ID)   { s[id/64] &^= 1 << (id % 64) }
func (s bitset) clear()                  { clear(s) }

func (s bitset) count() (k int) {
	for _, w := range s {
		k += bits.OnesCount64(w)
	}
	return k
}

func (s bitset) append(b []byte) []byte {
	for _, w := range s {
		b = binary.AppendUvarint(b, w)
	}
	return b
}

func (s bitset) load(r *protocol.Reader, n int) {
	for i := range s {
		s[i] = r.Max(^uint64(0) >> max(0, 64*(i+1)-n))
	}
}
