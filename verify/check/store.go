package check

import "slices"

// A store maps the states that were found to their numbers, in the order in which
// they were found, and knows for each how it was reached first.
//
// It compares fingerprints, and keeps whole vectors only until they are expanded;
// or, where it is exact, it keeps all vectors and compares them. One table serves
// both: equal fingerprints of different states stand in it one behind the other.
type store struct {
	table
	exact   bool
	vectors slab
	places  blocks[place] // by number, only where exact
	links   links
}

// add returns the number of the state st, whose fingerprint is print, and whether
// it is new: then its parent is a state of that number, and ordinal is the place of
// the action that led to it among those of its parent.
func (s *store) add(st []uint32, print uint64, parent uint32, ordinal uint16) (number uint32, isNew bool) {
	h := s.room(print)
	i := s.place(h, st, print)
	if h.keys[i] != 0 {
		return h.numbers[i], false
	}
	number = s.put(h, i, print)
	p := s.vectors.add(st)
	if s.exact {
		s.places.add(p)
	}
	s.links.add(parent, ordinal)
	return number, true
}

// find returns the number of a state, if it was found.
func (s *store) find(st []uint32, print uint64) (uint32, bool) {
	h := s.shard(print)
	if h.used == 0 {
		return 0, false
	}
	i := s.place(h, st, print)
	return h.numbers[i], h.keys[i] != 0
}

// place returns the place of a state in its shard, or a free one.
func (s *store) place(h *shard, st []uint32, print uint64) int {
	i := h.place(print, h.home(print))
	for s.exact && h.keys[i] != 0 && !slices.Equal(s.state(h.numbers[i]), st) {
		if i++; i == len(h.keys) {
			i = 0
		}
		i = h.place(print, i)
	}
	return i
}

// state returns the vector of a state. Only where exact.
func (s *store) state(number uint32) []uint32 { return s.vectors.at(s.places.at(int(number))) }

// len is how many states were found.
func (s *store) len() int { return s.used }

// memory estimates the bytes in use.
func (s *store) memory() int64 {
	return s.table.bytes + s.vectors.bytes + s.links.bytes() + int64(len(s.places.list))*blockLen*8
}

// links is the tree of shortest paths: for each state, in the order in which
// they were found, its parent and the place of the action that led to it among
// those of its parent. The parent of a root is itself.
type links struct {
	parent  blocks[uint32]
	ordinal blocks[uint16]
}

func (l *links) add(parent uint32, ordinal uint16) {
	l.parent.add(parent)
	l.ordinal.add(ordinal)
}

func (l *links) bytes() int64 { return int64(len(l.parent.list)) * blockLen * 6 }

// path returns the root above state i, and the ordinals from it to i.
func (l *links) path(i uint32) (root uint32, ordinals []uint16) {
	for {
		p := l.parent.at(int(i))
		if p == i {
			return i, ordinals
		}
		ordinals = append([]uint16{l.ordinal.at(int(i))}, ordinals...)
		i = p
	}
}
