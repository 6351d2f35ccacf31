// Package lasso finds infinite fair runs in a finite graph: a way to a loop, and the
// loop. It knows neither algorithms nor messages, so that graphs written by hand are
// decided by the code that decides algorithms.
//
// A run is infinite, or rests in a state for ever. It is fair if no class of steps is
// neglected: see Class. The obvious way, to carry along with each run what it has
// still to see, needs each state once for each such set, and misses runs if it does
// not do that. Here the states that a run visits again and again are looked at
// instead: they form a strongly connected part of the graph, and whether some run
// through all of it is fair can be read off that part.
package lasso

import (
	"slices"
)

// A Class is a set of steps that a fair run does not neglect. If one of them is
// possible from some point on, one is taken again and again (weak fairness); if the
// class is strong, already if one is possible again and again.
type Class uint64

// A Graph has states numbered from 0, and for each its edges in a fixed order.
type Graph interface {
	Len() int
	// Edges are the ends of the edges of s, valid until the next call. An end that is
	// not known, because it was not explored, is Nowhere.
	Edges(s uint32) []uint32
	// Enabled appends to list, which is empty, the classes with a step in s, sorted.
	Enabled(list []Class, s uint32) []Class
	// Served calls f for each edge of s, by its place, and each class of some that it
	// serves: it takes a step of the class, or starts its patience anew.
	Served(s uint32, some []Class, f func(place int, c Class))
	// Ends reports whether a fair run may rest in s for ever.
	Ends(s uint32) bool
	Strong(c Class) bool
}

// Nowhere is the end of an edge that leads out of what is known.
const Nowhere = ^uint32(0)

// A Lasso is a run: any way to the state First, and from there round and round the
// Loop, which ends in First. If Loop is empty the run rests there.
type Lasso struct {
	First uint32
	Loop  []Arc
}

// An Arc is an edge: the state that it leaves, and its place there.
type Arc struct {
	From  uint32
	Place int
}

// A Solver looks for runs in a graph. Its memory serves one call after the other.
type Solver struct {
	g    Graph
	stop func() bool
	part []uint32 // the set that a state belongs to, 0 for none: sets are disjoint
	sets uint32   // numbered so far

	// Of Components. A state is closed when its component is known.
	order, low []uint32 // order is 0 for a state not yet visited
	stack      []uint32
	calls      []call
	polls      int
	stopped    bool

	asked []Class // scratch of within
}

// Bytes is what a Solver needs at most for each state: three words, and its stacks,
// which grow to twice what they hold.
const Bytes = 3*4 + 2*4 + 2*16

// New returns a solver for g. It polls stop, and gives up when that is true.
func New(g Graph, stop func() bool) *Solver {
	n := g.Len()
	return &Solver{g: g, stop: stop, part: make([]uint32, n), order: make([]uint32, n), low: make([]uint32, n)}
}

// Stopped reports whether the last call was given up.
func (s *Solver) Stopped() bool { return s.stopped }

// Fair returns a fair run that stays for ever where in is true, or nil if there is
// none. A run that comes to rest is preferred, since nothing is easier to understand,
// and then one with the smallest First.
func (s *Solver) Fair(in func(state uint32) bool) *Lasso {
	set := s.restrict(in)
	for i := range s.part {
		if s.part[i] == set && s.g.Ends(uint32(i)) {
			return &Lasso{First: uint32(i)}
		}
	}
	var best []uint32
	var rest [][]uint32 // sets of states in which a fair run may still be
	judge := func(c []uint32) {
		if best != nil && slices.Min(c) > best[0] || !s.cyclic(c) {
			return
		}
		if fair, smaller := s.judge(c); fair {
			best = slices.Sorted(slices.Values(c))
		} else {
			rest = append(rest, smaller)
		}
	}
	s.components(set, s.states, judge)
	for len(rest) > 0 && !s.stopped {
		states := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		s.components(s.name(states), slices.Values(states), judge)
	}
	if best == nil {
		return nil
	}
	return s.lasso(best)
}

// cyclic reports whether an edge joins two states of component c, or one to itself.
func (s *Solver) cyclic(c []uint32) bool {
	return len(c) > 1 || slices.Contains(s.g.Edges(c[0]), c[0])
}

// judge reports whether a run that visits all of the cyclic component c again and
// again can be fair. If not, it returns the states of c among which one still can.
//
// A class that is enabled everywhere in c, and served by no edge of c, makes every
// run within c unfair. If there is none, one run can serve all weak classes. A strong
// class that is enabled somewhere in c, and served by no edge of c, makes each run
// unfair that visits such a state again and again: only the others are left.
func (s *Solver) judge(c []uint32) (fair bool, smaller []uint32) {
	set := s.name(c)
	if len(s.unserved(c, set, s.everywhere(c))) > 0 {
		return false, nil
	}
	starved := s.unserved(c, set, s.strongIn(c))
	if len(starved) == 0 {
		return true, nil
	}
	var list []Class
	for _, i := range c {
		list = s.g.Enabled(list[:0], i)
		if !slices.ContainsFunc(list, func(f Class) bool { return slices.Contains(starved, f) }) {
			smaller = append(smaller, i)
		}
	}
	return false, smaller
}

// everywhere returns the classes that are enabled in all states of c.
func (s *Solver) everywhere(c []uint32) []Class {
	all := s.g.Enabled(nil, c[0])
	var list []Class
	for _, i := range c[1:] {
		if len(all) == 0 {
			break
		}
		list = s.g.Enabled(list[:0], i)
		all = slices.DeleteFunc(all, func(f Class) bool { return !has(list, f) })
		s.poll()
	}
	return all
}

// strongIn returns the strong classes that are enabled in some state of c, sorted.
func (s *Solver) strongIn(c []uint32) []Class {
	var all, list []Class
	for _, i := range c {
		list = s.g.Enabled(list[:0], i)
		for _, f := range list {
			if k, found := slices.BinarySearch(all, f); !found && s.g.Strong(f) {
				all = slices.Insert(all, k, f)
			}
		}
		s.poll()
	}
	return all
}

// unserved returns the classes of some that no edge within the set c serves.
func (s *Solver) unserved(c []uint32, set uint32, some []Class) []Class {
	left := slices.Clone(some)
	for _, i := range c {
		if len(left) == 0 {
			break
		}
		s.within(i, set, left, func(_ int, f Class) {
			left = slices.DeleteFunc(left, func(g Class) bool { return g == f })
		})
		s.poll()
	}
	return left
}

// within calls f for each edge of state i that stays in a set, and each class of
// some that it serves.
func (s *Solver) within(i, set uint32, some []Class, f func(place int, c Class)) {
	s.asked = append(s.asked[:0], some...) // f may shrink some
	s.g.Served(i, s.asked, func(place int, c Class) {
		if s.stays(i, place, set) {
			f(place, c)
		}
	})
}

// stays reports whether an edge of state i leads to a state of a set.
func (s *Solver) stays(i uint32, place int, set uint32) bool {
	to := s.g.Edges(i)[place]
	return to != Nowhere && s.part[to] == set
}

func has(sorted []Class, f Class) bool {
	_, found := slices.BinarySearch(sorted, f)
	return found
}
