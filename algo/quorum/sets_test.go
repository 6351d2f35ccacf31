package quorum

import (
	"fmt"
	"slices"
	"testing"
)

// all is that all four conditions of voting sets hold.
var all = Conditions{Meet: true, Equal: true, Even: true, Own: true}

// The cyclic sets have all four conditions for every n, with a size within one of the
// smallest that there could be as far as the table goes.
func TestCyclic(t *testing.T) {
	for n := 1; n <= tabled; n++ {
		sets := Cyclic.Sets(n)
		if got := sets.Conditions(); got != all {
			t.Errorf("n=%d: %+v", n, got)
		}
		if k := len(sets[0]); k < Least(n) || k > Least(n)+1 {
			t.Errorf("n=%d: sets of %d, want %d or one more", n, k, Least(n))
		}
	}
	for _, n := range []int{105, 133, 256} { // rulers, and a plane between them
		if got := Cyclic.Sets(n).Conditions(); got != all {
			t.Errorf("n=%d: %+v", n, got)
		}
	}
}

// Each of the four conditions is seen to be missing where it alone is, and the sizes that
// Least excludes are not possible.
func TestConditions(t *testing.T) {
	for _, test := range []struct {
		sets Sets
		want Conditions
	}{
		{Sets{{0}, {1}}, Conditions{Equal: true, Even: true, Own: true}},
		{Sets{{0, 1, 2}, {0, 1}, {0, 2}}, Conditions{Meet: true, Own: true}},
		{Sets{{0, 1}, {0, 1}, {0, 2}}, Conditions{Meet: true, Equal: true, Own: true}},
		{Sets{{1, 2}, {0, 2}, {0, 1}}, Conditions{Meet: true, Equal: true, Even: true}},
	} {
		if got := test.sets.Conditions(); got != test.want {
			t.Errorf("%v: %+v, want %+v", test.sets, got, test.want)
		}
	}
	for n, k := range map[int]int{1: 1, 3: 2, 4: 3, 7: 3, 8: 4, 13: 4, 14: 5, 21: 5, 100: 11} {
		if Least(n) != k {
			t.Errorf("Least(%d) is %d, want %d", n, Least(n), k)
		}
	}
}

// The grid misses conditions 2 and 3 just where its last row is not full.
func TestGrid(t *testing.T) {
	for n := 1; n <= 100; n++ {
		side := 1
		for side*side < n {
			side++
		}
		want := all
		if n%side != 0 {
			want.Equal, want.Even = false, false
		}
		sets := Grid.Sets(n)
		if got := sets.Conditions(); got != want {
			t.Errorf("n=%d: %+v, want %+v", n, got, want)
		}
		if side*side == n && len(sets[0]) != 2*side-1 {
			t.Errorf("n=%d: sets of %d, want %d", n, len(sets[0]), 2*side-1)
		}
	}
}

// Majorities miss nothing but that they should be small.
func TestMajorities(t *testing.T) {
	for n := 1; n <= 100; n++ {
		sets := Majorities.Sets(n)
		if got := sets.Conditions(); got != all || len(sets[0]) != n/2+1 {
			t.Errorf("n=%d: %+v, sets of %d", n, got, len(sets[0]))
		}
	}
}

// The sets of the lecture, with processes from 1 as it prints them.
func TestSlides(t *testing.T) {
	for n, want := range map[int][][]int{
		3: {{1, 2}, {2, 3}, {1, 3}},
		7: {{1, 2, 3}, {2, 4, 6}, {3, 5, 6}, {1, 4, 5}, {2, 5, 7}, {1, 6, 7}, {3, 4, 7}},
	} {
		sets := Slides.Sets(n)
		if got := sets.Conditions(); got != all {
			t.Errorf("n=%d: %+v", n, got)
		}
		for i, v := range sets {
			for k := range v {
				if v[k]+1 != want[i][k] {
					t.Errorf("n=%d: V_%d is %v, want all of it one less than %v", n, i+1, v, want[i])
				}
			}
		}
	}
}

// What a form is not defined for has no sets.
func TestDefined(t *testing.T) {
	for _, f := range []Form{Cyclic, Majorities, Grid, Plane, Slides, -1, Slides + 1} {
		for _, n := range []int{-1, 0, 1, 3, 4, 6, 7, 13, 21, 43, 57, 111, 1057, 1123} {
			want := n > 0
			switch f {
			case Plane:
				want = slices.Contains([]int{3, 7, 13, 21, 57, 1057}, n)
			case Slides:
				want = n == 3 || n == 7
			case -1, Slides + 1:
				want = false
			}
			if got := f.Defined(n); got != want || (f.Of(0, n) != nil) != want || (n < 1000 && (f.Sets(n) != nil) != want) {
				t.Errorf("form %d, n=%d: defined %v, want %v", f, n, got, want)
			}
		}
	}
}

func ExampleForm_Sets() {
	for i, v := range Cyclic.Sets(7) {
		fmt.Println(i, v)
	}
	fmt.Printf("%+v\n", Grid.Sets(7).Conditions())
	// Output:
	// 0 [0 1 3]
	// 1 [1 2 4]
	// 2 [2 3 5]
	// 3 [3 4 6]
	// 4 [0 4 5]
	// 5 [1 5 6]
	// 6 [0 2 6]
	// {Meet:true Equal:false Even:false Own:true}
}
