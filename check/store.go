package check

import (
	"math/bits"
)

// fingerprint condenses a state to 64 bits, none of them 0.
func fingerprint(st []uint32) uint64 {
	const k0, k1 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := uint64(len(st)) * k1
	mix := func(w uint64) {
		hi, lo := bits.Mul64(h^w^k0, k1)
		h = hi ^ lo
	}
	for ; len(st) >= 2; st = st[2:] {
		mix(uint64(st[0])<<32 | uint64(st[1]))
	}
	if len(st) == 1 {
		mix(uint64(st[0]))
	}
	mix(k1)
	return max(h, 1)
}

// seen is a set of fingerprints: shards of open-addressed tables. Each shard
// grows on its own, by half, so that growth never needs twice the memory.
type seen struct {
	shards [256]shard
	bytes  int64
}

type shard struct {
	table []uint64
	used  int
}

// add reports whether f is new.
func (s *seen) add(f uint64) bool {
	h := &s.shards[f>>56]
	if h.used >= len(h.table)/5*4 {
		s.grow(h)
	}
	if !h.put(f) {
		return false
	}
	h.used++
	return true
}

func (s *seen) grow(h *shard) {
	old := h.table
	h.table = make([]uint64, max(40, len(old)/2*3))
	s.bytes += 8 * int64(len(h.table)-len(old))
	for _, f := range old {
		if f != 0 {
			h.put(f)
		}
	}
}

// put maps the lower bits, spread over 64, to a place in a table of any length.
func (h *shard) put(f uint64) bool {
	hi, _ := bits.Mul64(f<<8, uint64(len(h.table)))
	for i := int(hi); ; {
		switch h.table[i] {
		case f:
			return false
		case 0:
			h.table[i] = f
			return true
		}
		if i++; i == len(h.table) {
			i = 0
		}
	}
}

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

// A frontier is a queue of states of one depth. What was taken is free for the
// next frontier.
type frontier struct {
	blocks [][]uint32 // each: length, state, length, state, ..
	states int64
}

// A pool of blocks, shared by the two frontiers.
type pool struct {
	free  [][]uint32
	bytes int64
}

func (f *frontier) add(p *pool, st []uint32) {
	k := len(f.blocks) - 1
	if k < 0 || cap(f.blocks[k])-len(f.blocks[k]) < len(st)+1 {
		f.blocks = append(f.blocks, p.get(len(st)+1))
		k++
	}
	f.blocks[k] = append(append(f.blocks[k], uint32(len(st))), st...)
	f.states++
}

func (p *pool) get(size int) []uint32 {
	if k := len(p.free) - 1; k >= 0 && size <= blockLen {
		b := p.free[k]
		p.free = p.free[:k]
		return b[:0]
	}
	p.bytes += 4 * int64(max(size, blockLen))
	return make([]uint32, 0, max(size, blockLen))
}

// each empties f, state by state, until visit returns false.
func (f *frontier) each(p *pool, visit func(st []uint32) bool) {
	for k, b := range f.blocks {
		for rest := b; len(rest) > 0; {
			n := rest[0]
			f.states--
			if !visit(rest[1 : 1+n]) {
				return
			}
			rest = rest[1+n:]
		}
		f.blocks[k] = nil
		p.free = append(p.free, b)
	}
	f.blocks = f.blocks[:0]
}
