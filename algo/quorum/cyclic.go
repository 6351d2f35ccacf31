package quorum

// Cover returns a cyclic difference cover of n: numbers from 0 on, in increasing order,
// whose differences modulo n are all residues. Then i + D and j + D share a member for
// any i and j: there are d and e in D with d-e = j-i. D holds 0, so that i is in i + D.
//
// Up to n = 104 the size is at most Least(n)+1, from a table that was found by search.
// Beyond, it is Least(n) where n is the number of points of a plane (see Singer), and
// else about sqrt(1.5n), 1.22 times as many.
func Cover(n int) []int {
	switch {
	case n < 1:
		return nil
	case n <= len(covers):
		return covers[n-1]
	case Order(n) > 0:
		return Singer(Order(n))
	default:
		return ruler(n / 2)
	}
}

// ruler returns the marks of the ruler of Wichmann with the fewest marks that measures
// every length to least. A difference of n-d is one of -d modulo n, so that a cover need
// have only those to n/2.
//
// B. Wichmann, "A note on restricted difference bases", J. London Math. Soc. 38, 1963. That
// such rulers make quorums: C. J. Colbourn, A. C. H. Ling, "Quorums from difference
// covers", Information Processing Letters 75, 2000.
func ruler(least int) []int {
	var best []int
	for r := 0; best == nil || 4*r+3 < len(best); r++ {
		s := max(0, (least-4*r*(r+2)-3+4*r+2)/(4*r+3))
		if marks := 4*r + s + 3; best == nil || marks < len(best) {
			best = wichmann(r, s)
		}
	}
	return best
}

// wichmann returns the marks of the ruler W(r, s), of length 4r(r+s+2)+3(s+1).
func wichmann(r, s int) []int {
	marks := make([]int, 1, 4*r+s+3)
	for _, step := range [...]struct{ length, times int }{
		{1, r}, {r + 1, 1}, {2*r + 1, r}, {4*r + 3, s}, {2*r + 2, r + 1}, {1, r},
	} {
		for range step.times {
			marks = append(marks, marks[len(marks)-1]+step.length)
		}
	}
	return marks
}
