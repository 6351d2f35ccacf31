package membership

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/protocol"
)

// Sets do what maps do, of small and of large ids.
func TestSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		n := []int{1, 5, 63, 64, 65, 72, 73, 200}[r.IntN(8)]
		draw := func() (set, map[protocol.ID]bool) {
			m := map[protocol.ID]bool{}
			for range r.IntN(2 * n) {
				m[protocol.ID(r.IntN(n))] = true
			}
			return collect(n, func(id protocol.ID) bool { return m[id] }), m
		}
		s, a := draw()
		u, b := draw()
		id := protocol.ID(r.IntN(n))
		same := func(op string, got set, in func(protocol.ID) bool) {
			t.Helper()
			want := set{}
			below, size := 0, 0
			for j := range protocol.ID(n) {
				if got.has(j) != in(j) {
					t.Fatalf("%v %s %v (%d): %v is wrong about %d", s, op, u, id, got, j)
				}
				if in(j) {
					want = want.with(j)
					size++
					if j < id {
						below++
					}
				}
			}
			if got != want || got.len() != size || got.below(id) != below || got.empty() != (size == 0) {
				t.Fatalf("%v %s %v (%d): %v, of length %d, %d below: want %v", s, op, u, id, got, got.len(), got.below(id), want)
			}
			if size > 0 && (!in(got.first()) || got.below(got.first()) > 0) {
				t.Fatalf("%v: its first is %d", got, got.first())
			}
			var c protocol.Codec
			var back set
			got.fields(c.Appending(nil))
			back.fields(c.Loading(c.Bytes()))
			if rest, err := c.Rest(); back != got || err != nil || len(rest) > 0 {
				t.Fatalf("%v is read as %v, %v", got, back, err)
			}
		}
		same("or", s.or(u), func(j protocol.ID) bool { return a[j] || b[j] })
		same("and", s.and(u), func(j protocol.ID) bool { return a[j] && b[j] })
		same("minus", s.minus(u), func(j protocol.ID) bool { return a[j] && !b[j] })
		same("with", s.with(id), func(j protocol.ID) bool { return a[j] || j == id })
		same("without", s.without(id), func(j protocol.ID) bool { return a[j] && j != id })
		same("only", only(id), func(j protocol.ID) bool { return j == id })
		same("up to", upTo(n), func(protocol.ID) bool { return true })
		if got, want := slices.Collect(s.all), slices.Sorted(maps.Keys(a)); !slices.Equal(got, want) {
			t.Fatalf("%v yields %v, want %v", s, got, want)
		}
	}
	var c protocol.Codec
	var s set
	s.fields(c.Loading([]byte{0, 1, 0}))
	if _, err := c.Rest(); err == nil {
		t.Errorf("a set that ends in zeros is read as %v", s)
	}
}

// Sets of processes up to #63 cost no memory.
func TestSetAllocates(t *testing.T) {
	a, b := only(3).with(63), upTo(64)
	sink := 0
	if n := testing.AllocsPerRun(100, func() {
		c := a.or(b).minus(a).and(b).without(5).with(7)
		for id := range collect(64, c.has).all {
			sink += int(id)
		}
	}); n > 0 {
		t.Errorf("%v allocations: want none", n)
	}
}
