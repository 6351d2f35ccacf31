package quorum

import (
	"slices"
	"testing"
)

// The orders of planes that there are: powers of primes, and the triangle.
var orders = []int{1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32}

// In the planes of Singer each residue but 0 is a difference exactly once: any two lines
// share one point.
func TestPlanes(t *testing.T) {
	for q := -1; q <= MostOrder+10; q++ {
		d, n := Singer(q), q*q+q+1
		if !slices.Contains(orders, q) {
			if d != nil || q > 0 && Order(n) != 0 {
				t.Errorf("there is a plane of order %d: %v", q, d)
			}
			continue
		}
		if Order(n) != q {
			t.Errorf("n=%d: order %d, want %d", n, Order(n), q)
		}
		if len(d) != q+1 || len(d) != Least(n) {
			t.Errorf("order %d: lines of %d, want %d", q, len(d), q+1)
		}
		if why := wrong(d, n); why != "" {
			t.Errorf("order %d: %v: %s", q, d, why)
		}
		if times := covered(d, n); slices.Max(times[1:]) != 1 {
			t.Errorf("order %d: %v: some residue is a difference twice", q, d)
		}
	}
	for _, q := range []int{1, 2, 3, 4, 5, 7, 8, 9} {
		if got := Plane.Sets(q*q + q + 1).Conditions(); got != all {
			t.Errorf("order %d: %+v", q, got)
		}
	}
}

// What the planes are made of are fields.
func TestFields(t *testing.T) {
	for _, q := range orders[1:] {
		f := newField(q)
		for a := range q {
			if f.times(a, 1) != a || f.plus(a, 0) != a || f.times(a, 0) != 0 {
				t.Fatalf("%d elements: 0 or 1 is not neutral for %d", q, a)
			}
			inverse, negative := false, false
			for b := range q {
				inverse = inverse || f.times(a, b) == 1
				negative = negative || f.plus(a, b) == 0
				for c := range q {
					if f.times(a, f.plus(b, c)) != f.plus(f.times(a, b), f.times(a, c)) {
						t.Fatalf("%d elements: %d(%d+%d) is not distributive", q, a, b, c)
					}
					if f.times(a, f.times(b, c)) != f.times(f.times(a, b), c) {
						t.Fatalf("%d elements: %d*%d*%d is not associative", q, a, b, c)
					}
				}
			}
			if !negative || inverse != (a != 0) {
				t.Fatalf("%d elements: the inverse of %d: %v, its negative: %v", q, a, inverse, negative)
			}
		}
	}
}
