package check

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/poundlock/poundlock/protocol"
)

// normal subtracts from all values of a counter what moves its smallest one down
// to Counter.Least.
func (s *space) normal(st []uint32) []uint32 {
	if !s.shifts {
		return st
	}
	s.by = slices.Grow(s.by[:0], len(s.mail.least))[:len(s.mail.least)]
	for k := range s.by {
		s.by[k] = math.MaxUint64
	}
	for i, w := range st[1:] {
		if w == 0 {
			continue
		}
		for _, l := range s.lowsOf(i, w) {
			s.by[l.counter] = min(s.by[l.counter], l.value)
		}
	}
	moves := false
	for k, least := range s.mail.least {
		if v := s.by[k]; v == math.MaxUint64 || v <= least {
			s.by[k] = 0
		} else {
			s.by[k] = v - least
			moves = true
		}
	}
	if !moves {
		return st
	}
	for i, w := range st[1:] {
		if w != 0 {
			st[1+i] = s.shift(i, w)
		}
	}
	if !s.fifo {
		slices.Sort(st[1+s.total:])
	}
	return st
}

// lowsOf returns the lows of word i of a state, after the first one.
func (s *space) lowsOf(i int, w uint32) []low {
	if i >= s.total {
		return s.mail.lows[w]
	}
	return s.locals[w].lows
}

// shift moves word i of a state by s.by.
func (s *space) shift(i int, w uint32) uint32 {
	key := protocol.AppendBool(s.key[:0], i >= s.total)
	key = binary.AppendUvarint(key, uint64(w))
	moves := false
	for _, l := range s.lowsOf(i, w) {
		key = binary.AppendUvarint(key, s.by[l.counter])
		moves = moves || s.by[l.counter] != 0
	}
	s.key = key
	if !moves {
		return w
	}
	if n, ok := s.shifted[string(key)]; ok {
		return n
	}
	k, n := string(key), uint32(0)
	if i >= s.total {
		n = s.m.shiftMessage(w, s.by)
	} else {
		l := s.locals[w]
		l.state = s.m.shift(l.proc, l.state, s.by)
		n = s.intern(l)
	}
	s.shifted[k] = n
	s.bytes += int64(2*len(k)) + 60
	return n
}
