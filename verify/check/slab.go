package check

// A blocks is a list that grows without moving: blocks of one size.
type blocks[T any] struct {
	list [][]T
	n    int
}

const blockLen = 1 << 16

func (b *blocks[T]) add(v T) {
	if b.n%blockLen == 0 {
		b.list = append(b.list, make([]T, blockLen))
	}
	b.list[b.n/blockLen][b.n%blockLen] = v
	b.n++
}

func (b *blocks[T]) at(i int) T { return b.list[i/blockLen][i%blockLen] }

// A bitset is a set of numbers.
type bitset []uint64

func (b bitset) set(i uint64)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i uint64) bool { return b[i/64]>>(i%64)&1 == 1 }

// A slab holds vectors of words one after the other, each behind its length.
type slab struct {
	blocks [][]uint32
	free   [][]uint32 // blocks to be used again
	bytes  int64
}

// A place is where a vector stands in a slab: its block and its offset there.
type place struct{ block, offset uint32 }

// add appends a copy of v.
func (s *slab) add(v []uint32) place {
	k := len(s.blocks) - 1
	if k < 0 || cap(s.blocks[k])-len(s.blocks[k]) < len(v)+1 {
		s.blocks = append(s.blocks, s.block(len(v)+1))
		k++
	}
	p := place{uint32(k), uint32(len(s.blocks[k]))}
	s.blocks[k] = append(append(s.blocks[k], uint32(len(v))), v...)
	return p
}

func (s *slab) block(size int) []uint32 {
	if k := len(s.free) - 1; k >= 0 && size <= blockLen {
		b := s.free[k]
		s.free = s.free[:k]
		return b[:0]
	}
	s.bytes += 4 * int64(max(size, blockLen))
	return make([]uint32, 0, max(size, blockLen))
}

// end is where the next vector may stand.
func (s *slab) end() place {
	k := len(s.blocks) - 1
	if k < 0 {
		return place{}
	}
	return place{uint32(k), uint32(len(s.blocks[k]))}
}

// at returns the vector at p, which must not be changed.
func (s *slab) at(p place) []uint32 {
	b := s.blocks[p.block][p.offset:]
	return b[1 : 1+b[0] : 1+b[0]]
}

// next returns the vector at p, or at the beginning of the block behind if p is at
// the end of its own, and the place behind it.
func (s *slab) next(p place) ([]uint32, place) {
	if int(p.offset) == len(s.blocks[p.block]) {
		p = place{block: p.block + 1}
	}
	v := s.at(p)
	return v, place{p.block, p.offset + 1 + uint32(len(v))}
}

// release gives up the vectors before p: their blocks are used again.
func (s *slab) release(p place) {
	for k := int(p.block) - 1; k >= 0 && s.blocks[k] != nil; k-- {
		s.free = append(s.free, s.blocks[k])
		s.blocks[k] = nil
	}
}
