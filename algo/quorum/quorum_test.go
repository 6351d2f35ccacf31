package quorum

import "testing"

// TestTwoThirds is the table of Sigma's budgets: with m = ceil(2n/3), three
// servers stand one silent server but no memory loss, and four stand one of each.
func TestTwoThirds(t *testing.T) {
	for _, c := range []struct{ n, m, losses, silent int }{
		{3, 2, 0, 1},
		{4, 3, 1, 1},
		{5, 4, 2, 1},
		{6, 4, 1, 2},
		{7, 5, 2, 2},
		{8, 6, 3, 2},
		{9, 6, 2, 3},
		{10, 7, 3, 3},
	} {
		m := TwoThirds(c.n)
		if m != c.m || MemoryLosses(c.n, m) != c.losses || Silent(c.n, m) != c.silent {
			t.Errorf("n=%d: m=%d, %d memory losses, %d silent; want %d, %d, %d",
				c.n, m, MemoryLosses(c.n, m), Silent(c.n, m), c.m, c.losses, c.silent)
		}
	}
}

// TestIntersection: two sets of m out of n share at least 2m-n members, so they
// share one that remembers as long as MemoryLosses is not exceeded, and no more.
func TestIntersection(t *testing.T) {
	for n := 1; n <= 100; n++ {
		for _, m := range []int{TwoThirds(n), Majority(n)} {
			if shared := 2*m - n; shared-MemoryLosses(n, m) != 1 {
				t.Errorf("n=%d, m=%d: %d losses of %d shared members leave none", n, m, MemoryLosses(n, m), shared)
			}
		}
		if a := MemoryLosses(n, TwoThirds(n)); a < (n+2)/3-1 {
			t.Errorf("n=%d: two thirds stand %d losses, fewer than n/3 are promised", n, a)
		}
	}
}
