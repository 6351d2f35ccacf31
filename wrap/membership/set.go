package membership

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"github.com/poundlock/poundlock/protocol"
)

// A set is one of processes. It is a value: compared with ==, never changed once made, and
// made without allocation where its members are less than 64.
type set struct {
	low  uint64 // those, as bits
	high string // the others: bits of bytes, of which the last one is not zero
}

func only(id protocol.ID) set { return set{}.with(id) }

// upTo returns the first n processes.
func upTo(n int) set { return collect(n, func(protocol.ID) bool { return true }) }

// collect returns those of the first n processes that are in.
func collect(n int, in func(protocol.ID) bool) set {
	var s set
	for id := range protocol.ID(min(n, 64)) {
		if in(id) {
			s.low |= 1 << id
		}
	}
	if n <= 64 {
		return s
	}
	high := make([]byte, (n-64+7)/8)
	for id := protocol.ID(64); id < protocol.ID(n); id++ {
		if in(id) {
			high[id/8-8] |= 1 << (id % 8)
		}
	}
	s.high = trim(high)
	return s
}

func trim(high []byte) string {
	k := len(high)
	for k > 0 && high[k-1] == 0 {
		k--
	}
	return string(high[:k])
}

// combine returns the set whose bits are those that of makes of each two bytes.
func combine(a, b string, of func(a, b byte) byte) string {
	high := make([]byte, max(len(a), len(b)))
	for i := range high {
		high[i] = of(byteOf(a, i), byteOf(b, i))
	}
	return trim(high)
}

func byteOf(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

func (s set) empty() bool { return s == set{} }

func (s set) has(id protocol.ID) bool {
	if id < 64 {
		return s.low>>id&1 == 1
	}
	return byteOf(s.high, int(id/8-8))>>(id%8)&1 == 1
}

// with returns s and id.
func (s set) with(id protocol.ID) set {
	if id < 64 {
		s.low |= 1 << id
		return s
	}
	high := make([]byte, max(len(s.high), int(id/8-7)))
	copy(high, s.high)
	high[id/8-8] |= 1 << (id % 8)
	s.high = string(high)
	return s
}

// without returns s but id.
func (s set) without(id protocol.ID) set {
	if s.has(id) {
		return s.minus(only(id))
	}
	return s
}

// or returns those in s or t.
func (s set) or(t set) set {
	s.low |= t.low
	if s.high != t.high {
		s.high = combine(s.high, t.high, func(a, b byte) byte { return a | b })
	}
	return s
}

// and returns those in s and t.
func (s set) and(t set) set {
	s.low &= t.low
	if s.high != t.high {
		s.high = combine(s.high, t.high, func(a, b byte) byte { return a & b })
	}
	return s
}

// minus returns those in s that are not in t.
func (s set) minus(t set) set {
	s.low &^= t.low
	if s.high != "" && t.high != "" {
		s.high = combine(s.high, t.high, func(a, b byte) byte { return a &^ b })
	}
	return s
}

func (s set) len() int {
	n := bits.OnesCount64(s.low)
	for i := range len(s.high) {
		n += bits.OnesCount8(s.high[i])
	}
	return n
}

// below returns how many of s have a smaller id.
func (s set) below(id protocol.ID) int {
	if id < 64 {
		return bits.OnesCount64(s.low & (1<<id - 1))
	}
	n := bits.OnesCount64(s.low)
	for i := range min(len(s.high), int(id/8-8)) {
		n += bits.OnesCount8(s.high[i])
	}
	return n + bits.OnesCount8(byteOf(s.high, int(id/8-8))&(1<<(id%8)-1))
}

// first returns the least of s, which is not empty.
func (s set) first() (id protocol.ID) {
	for id = range s.all {
		break
	}
	return id
}

// all yields the members in order.
func (s set) all(yield func(protocol.ID) bool) {
	for b := s.low; b != 0; b &= b - 1 {
		if !yield(protocol.ID(bits.TrailingZeros64(b))) {
			return
		}
	}
	for i := range len(s.high) {
		for b := s.high[i]; b != 0; b &= b - 1 {
			if !yield(protocol.ID(64 + 8*i + bits.TrailingZeros8(b))) {
				return
			}
		}
	}
}

func (s set) String() string {
	var ids []string
	for id := range s.all {
		ids = append(ids, fmt.Sprintf("#%d", id))
	}
	return "{" + strings.Join(ids, ",") + "}"
}

func (s set) append(b []byte) []byte {
	return protocol.AppendText(binary.AppendUvarint(b, s.low), s.high)
}

func readSet(r *protocol.Reader) set {
	s := set{r.Uint(), r.Text()}
	if k := len(s.high); k > 0 && s.high[k-1] == 0 {
		r.Rest, r.Err = nil, protocol.ErrShort
		return set{}
	}
	return s
}
