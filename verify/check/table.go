package check

import (
	"math/bits"
	"reflect"
)

// A table numbers 64-bit keys, none of them 0, in the order in which they come.
// It is open-addressed and in shards, each of which grows on its own, by half, so
// that growth never needs twice the memory. While nobody adds, many goroutines may
// look keys up.
type table struct {
	shards [256]shard
	used   int   // keys
	bytes  int64 // in use
}

type shard struct {
	keys    []uint64 // 0: free
	numbers []uint32 // of the keys
	used    int
}

// slotBytes is what one place of a shard takes.
const slotBytes = 8 + 4

func (t *table) shard(key uint64) *shard { return &t.shards[key>>56] }

// has reports whether key has a number. It is cheaper than find.
func (t *table) has(key uint64) bool {
	h := t.shard(key)
	return h.used > 0 && h.keys[h.place(key, h.home(key))] == key
}

// find returns the number of key, if it has one.
func (t *table) find(key uint64) (uint32, bool) {
	h := t.shard(key)
	if h.used == 0 {
		return 0, false
	}
	i := h.place(key, h.home(key))
	return h.numbers[i], h.keys[i] == key
}

// add returns the number of key, and whether it is new.
func (t *table) add(key uint64) (number uint32, isNew bool) {
	h := t.room(key)
	i := h.place(key, h.home(key))
	if h.keys[i] == key {
		return h.numbers[i], false
	}
	return t.put(h, i, key), true
}

// room returns the shard of key with at least one free place.
func (t *table) room(key uint64) *shard {
	h := t.shard(key)
	if h.used >= len(h.keys)/5*4 {
		t.grow(h)
	}
	return h
}

// put numbers key at place i, which is free.
func (t *table) put(h *shard, i int, key uint64) uint32 {
	number := uint32(t.used)
	h.keys[i], h.numbers[i] = key, number
	h.used++
	t.used++
	return number
}

func (t *table) grow(h *shard) {
	keys, numbers := h.keys, h.numbers
	n := max(20, len(keys)/2*3)
	h.keys, h.numbers = make([]uint64, n), make([]uint32, n)
	t.bytes += slotBytes * int64(n-len(keys))
	for k, key := range keys {
		if key == 0 {
			continue
		}
		i := h.place(0, h.home(key)) // a free one: a key may stand here twice, see store
		h.keys[i], h.numbers[i] = key, numbers[k]
	}
}

// home maps the lower bits of key, spread over 64, to a place in a shard of any
// length.
func (h *shard) home(key uint64) int {
	hi, _ := bits.Mul64(key<<8, uint64(len(h.keys)))
	return int(hi)
}

// place returns the first place from i on, around the end, that holds key or
// nothing.
func (h *shard) place(key uint64, i int) int {
	for h.keys[i] != key && h.keys[i] != 0 {
		if i++; i == len(h.keys) {
			i = 0
		}
	}
	return i
}

// A memo keeps what was computed for each of its keys.
type memo[V any] struct {
	table
	values []V // by the numbers of the keys
}

// keep adds a key, which is new.
func (m *memo[V]) keep(key uint64, v V) uint32 {
	n, _ := m.add(key)
	m.values = append(m.values, v)
	return n
}

// size estimates the bytes in use.
func (m *memo[V]) size() int64 {
	return m.bytes + int64(cap(m.values))*int64(reflect.TypeFor[V]().Size())
}

// pair is the key of a local state and a message.
func pair(local, msg uint32) uint64 { return scramble(uint64(local)<<32 | uint64(msg)) }

// scramble is a bijection of the 64-bit numbers that spreads small ones over all
// of them, and keeps 0. So a table of scrambled keys takes none for another.
func scramble(v uint64) uint64 {
	v = (v ^ v>>32) * 0xd6e8feb86659fd93
	v = (v ^ v>>32) * 0xd6e8feb86659fd93
	return v ^ v>>32
}
