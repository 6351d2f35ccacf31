package membership

import (
	"bytes"
	"encoding/binary"
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

func only(id protocol.ID) set {
	if id < 64 {
		return set{low: 1 << id}
	}
	high := make([]byte, id/8-7)
	high[id/8-8] = 1 << (id % 8)
	return set{high: string(high)}
}

// upTo returns the first n processes.
func upTo(n int) set {
	s := set{low: 1<<min(n, 64) - 1}
	if n > 64 {
		s.high = trim(append(bytes.Repeat([]byte{0xff}, n/8-8), 1<<(n%8)-1))
	}
	return s
}

// collect returns those of the first n processes that are in.
func collect(n int, in func(protocol.ID) bool) set {
	var few [8]byte
	all := few[:]
	if n > 64 {
		all = make([]byte, (n+7)/8)
	}
	for id := range protocol.ID(n) {
		if in(id) {
			all[id/8] |= 1 << (id % 8)
		}
	}
	return set{binary.LittleEndian.Uint64(all), trim(all[8:])}
}

func trim(high []byte) string { return string(bytes.TrimRight(high, "\x00")) }

// combine returns the set whose bits are those that of makes of each two words.
func (s set) combine(t set, of func(a, b uint64) uint64) set {
	both := set{low: of(s.low, t.low)}
	if s.high == "" && t.high == "" {
		return both
	}
	high := make([]byte, max(len(s.high), len(t.high)))
	for i := range high {
		high[i] = byte(of(uint64(byteOf(s.high, i)), uint64(byteOf(t.high, i))))
	}
	both.high = trim(high)
	return both
}

func byteOf(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

// or returns those in s or t.
func (s set) or(t set) set { return s.combine(t, func(a, b uint64) uint64 { return a | b }) }

// and returns those in s and t.
func (s set) and(t set) set { return s.combine(t, func(a, b uint64) uint64 { return a & b }) }

// minus returns those in s that are not in t.
func (s set) minus(t set) set { return s.combine(t, func(a, b uint64) uint64 { return a &^ b }) }

// with returns s and id.
func (s set) with(id protocol.ID) set { return s.or(only(id)) }

// without returns s except for id.
func (s set) without(id protocol.ID) set { return s.minus(only(id)) }

func (s set) empty() bool { return s == set{} }

func (s set) has(id protocol.ID) bool {
	if id < 64 {
		return s.low>>id&1 == 1
	}
	return byteOf(s.high, int(id/8-8))>>(id%8)&1 == 1
}

func (s set) len() int {
	n := bits.OnesCount64(s.low)
	for i := range len(s.high) {
		n += bits.OnesCount8(s.high[i])
	}
	return n
}

// below returns how many of s have a smaller id.
func (s set) below(id protocol.ID) int { return s.and(upTo(int(id))).len() }

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
	return "{" + strings.ReplaceAll(protocol.Named("", s.all), " ", "") + "}"
}

func (s *set) fields(c *protocol.Codec) {
	c.Uint(&s.low)
	protocol.Text(c, &s.high)
	c.Want(!strings.HasSuffix(s.high, "\x00"))
}
