package quorum

import (
	"math"
	"slices"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
)

// covered counts how often each residue modulo n is a difference of two numbers of d.
func covered(d []int, n int) []int {
	times := make([]int, n)
	for _, x := range d {
		for _, y := range d {
			times[((x-y)%n+n)%n]++
		}
	}
	return times
}

// wrong says what keeps d from being a difference cover of n with 0, "" if nothing does.
func wrong(d []int, n int) string {
	switch {
	case len(d) == 0 || d[0] != 0:
		return "0 is not its first number"
	case d[len(d)-1] >= n || !slices.IsSorted(d) || len(slices.Compact(slices.Clone(d))) != len(d):
		return "its numbers do not increase below n"
	case slices.Contains(covered(d, n), 0):
		return "some residue is no difference"
	}
	return ""
}

// Beyond the table there is a cover for each n, about sqrt(1.5n) large.
func TestRulers(t *testing.T) {
	step := lane.Of(t, "apart: each so many-th n", 1009, 101, 1)
	for n := tabled + 1; n <= 1<<16; {
		d := Cover(n)
		if why := wrong(d, n); why != "" {
			t.Fatalf("n=%d: %v: %s", n, d, why)
		}
		if most := math.Sqrt(1.5*float64(n)) + 2; float64(len(d)) > most {
			t.Fatalf("n=%d: a cover of %d, want at most %.1f", n, len(d), most)
		}
		if n < 2000 {
			n++
		} else {
			n += step
		}
	}
	if d := Cover(1 << 16); len(d) != 314 {
		t.Errorf("n=65536: a cover of %d", len(d))
	}
	if Cover(0) != nil || Cover(-1) != nil {
		t.Error("there is a cover of nothing")
	}
}

// Covers that miss a residue, or that do not begin with 0, are told from others.
func TestWrong(t *testing.T) {
	for _, d := range [][]int{nil, {1, 2, 4}, {0, 1, 2}, {0, 1, 1, 3}, {0, 3, 1}, {0, 1, 3, 7}} {
		if wrong(d, 7) == "" {
			t.Errorf("%v passes for a cover of 7", d)
		}
	}
}
