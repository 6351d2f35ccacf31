package lasso

import "iter"

// A call is a visit to a state that is not over.
type call struct {
	state uint32
	next  int // the place of its next edge
}

const closed = ^uint32(0)

// Components calls f for each strongly connected component of the states in which in
// is true: those to which others lead come before these. f must not keep c.
func (s *Solver) Components(in func(state uint32) bool, f func(c []uint32)) {
	s.components(s.restrict(in), s.states, f)
}

// restrict makes the set of the states in which in is true, and no other.
func (s *Solver) restrict(in func(state uint32) bool) (set uint32) {
	s.sets, s.stopped = 1, false
	clear(s.order)
	for i := range s.part {
		if s.part[i] = 0; in(uint32(i)) {
			s.part[i] = s.sets
		}
		s.poll()
	}
	return s.sets
}

// name makes a set of its own of states.
func (s *Solver) name(states []uint32) (set uint32) {
	s.sets++
	for _, i := range states {
		s.part[i], s.order[i] = s.sets, 0
	}
	return s.sets
}

// states yields all states.
func (s *Solver) states(yield func(uint32) bool) {
	for i := range s.part {
		if !yield(uint32(i)) {
			return
		}
	}
}

// components is Tarjan's algorithm on a set of states, which are among those given.
// Its calls are on a stack of its own, since a way through the graph may be as long as
// there are states. f may move the states of its component to another set.
func (s *Solver) components(set uint32, states iter.Seq[uint32], f func(c []uint32)) {
	visited := uint32(0)
	visit := func(i uint32) {
		visited++
		s.order[i], s.low[i] = visited, visited
		s.stack = append(s.stack, i)
		s.calls = append(s.calls, call{state: i})
	}
	for root := range states {
		if s.part[root] != set || s.order[root] != 0 {
			continue
		}
		visit(root)
		for len(s.calls) > 0 {
			top := &s.calls[len(s.calls)-1]
			i := top.state
			if edges := s.g.Edges(i); top.next < len(edges) {
				to := edges[top.next]
				top.next++
				switch {
				case to == Nowhere || s.part[to] != set:
				case s.order[to] == 0:
					visit(to)
				case s.low[to] != closed:
					s.low[i] = min(s.low[i], s.order[to])
				}
				continue
			}
			if s.calls = s.calls[:len(s.calls)-1]; len(s.calls) > 0 {
				above := s.calls[len(s.calls)-1].state
				s.low[above] = min(s.low[above], s.low[i])
			}
			if s.low[i] == s.order[i] {
				s.close(i, f)
			}
			if s.poll(); s.stopped {
				s.stack, s.calls = s.stack[:0], s.calls[:0]
				return
			}
		}
	}
}

// close takes the component that state i begins from the stack.
func (s *Solver) close(i uint32, f func(c []uint32)) {
	k := len(s.stack) - 1
	for s.stack[k] != i {
		k--
	}
	f(s.stack[k:])
	for _, j := range s.stack[k:] {
		s.low[j] = closed
	}
	s.stack = s.stack[:k]
}

// poll asks now and then whether to give up.
func (s *Solver) poll() {
	if s.polls++; s.polls%1024 == 0 && s.stop() {
		s.stopped = true
	}
}
