package check

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A table numbers keys as a map would, and when it grows it needs little more than
// before: one of its shards, by half.
func TestTable(t *testing.T) {
	var s table
	want := map[uint64]uint32{}
	rng := rand.New(rand.NewPCG(1, 2))
	if s.has(7) {
		t.Error("an empty table has a key")
	}
	if _, known := s.find(7); known {
		t.Error("an empty table finds a key")
	}
	for i := range 300_000 {
		key := scramble(rng.Uint64N(200_000) + 1)
		n, known := want[key]
		if has := s.has(key); has != known {
			t.Fatalf("key %d: has says %v", i, has)
		}
		if got, found := s.find(key); found != known || found && got != n {
			t.Fatalf("key %d: found %d, %v, want %d, %v", i, got, found, n, known)
		}
		before := s.bytes
		got, isNew := s.add(key)
		if isNew == known || known && got != n || !known && got != uint32(len(want)) {
			t.Fatalf("key %d: number %d, new %v; want %d, %v", i, got, isNew, n, !known)
		}
		if want[key] = got; len(want) > 50_000 && s.bytes-before > before/100 {
			t.Fatalf("%d keys: grows from %d to %d bytes at once", len(want), before, s.bytes)
		}
	}
	if most := int64(float64(len(want)*slotBytes) * 1.5 / 0.75); s.used != len(want) || s.bytes > most {
		t.Errorf("%d keys in %d bytes, want %d in at most %d", s.used, s.bytes, len(want), most)
	}
}

// scramble is a bijection: each of its parts can be undone.
func TestScramble(t *testing.T) {
	const k = 0xd6e8feb86659fd93
	inverse := uint64(k) // of k modulo 2^64, by Newton
	for range 6 {
		inverse *= 2 - k*inverse
	}
	for _, v := range []uint64{0, 1, 2, 1 << 32, 1<<64 - 1, 0x123456789abcdef} {
		h := scramble(v)
		for range 2 {
			h = (h ^ h>>32) * inverse
		}
		if h ^= h >> 32; h != v {
			t.Errorf("%#x comes back as %#x", v, h)
		}
	}
	if scramble(0) != 0 {
		t.Error("0 is not kept")
	}
}

// States with one fingerprint are one state, unless the store is exact.
func TestStoreCollisions(t *testing.T) {
	for _, exact := range []bool{false, true} {
		s := store{exact: exact}
		const print, n = 1 << 60, 200_000 // so that shards and blocks grow
		for i := range uint32(n) {
			st := []uint32{0, i, i + 1}
			number, isNew := s.add(st, print+uint64(i/2)*scramble(5), i, uint16(i))
			if want := !exact && i%2 == 1; isNew == want || exact && number != i || !exact && number != i/2 {
				t.Fatalf("exact %v: state %d has number %d, new %v", exact, i, number, isNew)
			}
		}
		for i := range uint32(n) {
			st, print := []uint32{0, i, i + 1}, print+uint64(i/2)*scramble(5)
			number, known := s.find(st, print)
			if !known || exact && (number != i || !slices.Equal(s.state(number), st)) {
				t.Fatalf("exact %v: state %d found as %d, %v", exact, i, number, known)
			}
			if _, known := s.find([]uint32{9, i}, print); known == exact {
				t.Fatalf("exact %v: a state that was never added: found %v", exact, known)
			}
		}
	}
}

// A slab gives back what was put in, in order, also behind vectors that are longer
// than a block, and takes new memory only when what was released is used.
func TestSlab(t *testing.T) {
	var s slab
	var from place
	for round := range 4 {
		behind := s.end()
		if round == 0 {
			behind = place{}
		}
		var want [][]uint32
		for i := range 3000 {
			v := slices.Repeat([]uint32{uint32(i)}, i%97)
			if i == 1500 && round == 0 {
				v = slices.Repeat(v[:1], blockLen+5)
			}
			want = append(want, v)
			if p := s.add(v); !slices.Equal(s.at(p), v) {
				t.Fatalf("vector %d is not at its place", i)
			}
		}
		from = behind
		for i, w := range want {
			var v []uint32
			if v, from = s.next(from); !slices.Equal(v, w) {
				t.Fatalf("round %d: vector %d is %d words, want %d", round, i, len(v), len(w))
			}
		}
		s.release(from)
	}
	if most := int64(4 * (6*blockLen + 5)); s.bytes > most {
		t.Errorf("%d bytes for vectors of which few are left, want at most %d", s.bytes, most)
	}
}
