package quorum

import "slices"

// Sets are voting sets: Sets[i] is V_i, in increasing order. A process that wants to enter asks
// the members of its own set, each of whom votes for one process at a time.
type Sets [][]int

// A Form is a way to make the voting sets of n processes.
type Form int

// The forms. Each but Cyclic is defined for some n only, or has larger sets.
const (
	// Cyclic is V_i = i + D mod n, with the set D that Cover returns. It has all four
	// conditions for every n.
	Cyclic Form = iota
	// Majorities is V_i = i, i+1, .. mod n, more than half of all. It has all four
	// conditions, but sets of n/2+1 members.
	Majorities
	// Grid writes the processes row by row into a square of side ceil(sqrt(n)): V_i is
	// the row and the column of i, almost twice as many members as Cyclic has. Where
	// the last row is not full, sets differ in size and processes in how many sets they
	// are in: conditions 2 and 3 are missing.
	Grid
	// Plane is Cyclic for those n alone that are the points of a projective plane of
	// order q = 1 to 32, with the lines of that plane: n = q^2+q+1, and q is 1 or a
	// prime power. Sets of q+1 members are then the smallest that there can be.
	Plane
	// Slides is for n = 3 and 7 the sets that lectures print as examples.
	Slides
)

// Defined reports whether there are sets of this form for n processes.
func (f Form) Defined(n int) bool {
	switch f {
	case Plane:
		return Order(n) > 0
	case Slides:
		return n == len(printed3) || n == len(printed7)
	default:
		return f >= Cyclic && f <= Grid && n > 0
	}
}

// Of returns V_i of n processes, in increasing order, without the other sets: nil where
// the form is not defined for n.
func (f Form) Of(i, n int) []int {
	if !f.Defined(n) {
		return nil
	}
	switch f {
	case Majorities:
		return turned(i, n, first(Majority(n)))
	case Grid:
		return grid(i, n)
	case Plane:
		return turned(i, n, Singer(Order(n)))
	case Slides:
		if n == len(printed3) {
			return printed3[i][:]
		}
		return printed7[i][:]
	default:
		return turned(i, n, Cover(n))
	}
}

// Sets returns the sets of n processes, nil where the form is not defined for n.
func (f Form) Sets(n int) Sets {
	if !f.Defined(n) {
		return nil
	}
	sets := make(Sets, n)
	for i := range sets {
		sets[i] = f.Of(i, n)
	}
	return sets
}

// printed3 and printed7 are the examples of lectures, with processes from 0: two lines of
// a triangle meet in a corner, and two of the plane of order 2 in a point.
var (
	printed3 = [3][2]int{{0, 1}, {1, 2}, {0, 2}}
	printed7 = [7][3]int{{0, 1, 2}, {1, 3, 5}, {2, 4, 5}, {0, 3, 4}, {1, 4, 6}, {0, 5, 6}, {2, 3, 6}}
)

// turned is i + d mod n.
func turned(i, n int, d []int) []int {
	set := make([]int, len(d))
	for k, x := range d {
		set[k] = (i + x) % n
	}
	slices.Sort(set)
	return set
}

func first(m int) []int {
	d := make([]int, m)
	for x := range d {
		d[x] = x
	}
	return d
}

func grid(i, n int) (set []int) {
	side := 1
	for side*side < n {
		side++
	}
	for row := 0; row < n; row += side {
		if row == i-i%side {
			for j := row; j < min(row+side, n); j++ {
				set = append(set, j)
			}
		} else if j := row + i%side; j < n {
			set = append(set, j)
		}
	}
	return set
}

// Least is the smallest size that voting sets of n processes with all conditions could
// have: the smallest K with K(K-1)+1 >= n. The K members of V_i are in K-1 other sets
// each, and V_i meets all sets in its members.
func Least(n int) int {
	k := 1
	for k*(k-1)+1 < n {
		k++
	}
	return k
}

// Conditions says which of the four conditions voting sets have. The first is what makes
// two holders impossible, the others share the work evenly and save messages.
type Conditions struct {
	Meet  bool // 1: any two sets share a member
	Equal bool // 2: all sets have the same size K
	Even  bool // 3: each process is in exactly K sets
	Own   bool // 4: each process is in its own set
}

// Conditions examines the sets.
func (s Sets) Conditions() Conditions {
	c := Conditions{Meet: true, Equal: true, Own: true}
	in := make([]int, len(s)) // how many sets each process is in
	for i, v := range s {
		c.Equal = c.Equal && len(v) == len(s[0])
		c.Own = c.Own && slices.Contains(v, i)
		for _, j := range v {
			in[j]++
		}
		for _, w := range s[:i] {
			c.Meet = c.Meet && meet(v, w)
		}
	}
	c.Even = c.Equal && !slices.ContainsFunc(in, func(sets int) bool { return sets != len(s[0]) })
	return c
}

// meet reports whether two sets in increasing order share a member.
func meet(v, w []int) bool {
	for len(v) > 0 && len(w) > 0 && v[0] != w[0] {
		if v[0] < w[0] {
			v = v[1:]
		} else {
			w = w[1:]
		}
	}
	return len(v) > 0 && len(w) > 0
}
