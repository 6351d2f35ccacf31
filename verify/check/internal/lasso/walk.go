package lasso

import "slices"

// lasso returns a short loop through the fair component c, which is sorted, from its
// first state: it walks to the nearest edge that settles a class, from its end to the
// nearest that settles another one, and at last back.
func (s *Solver) lasso(c []uint32) *Lasso {
	w := s.walk(c, c[0])
	w.owed = s.g.Enabled(nil, c[0])
	for _, f := range s.strongIn(c) {
		if !slices.Contains(w.owed, f) {
			w.owed = append(w.owed, f)
		}
	}
	for len(w.owed) > 0 {
		w.to(w.best)
	}
	if w.at != c[0] || len(w.path) == 0 {
		w.back(c[0])
	}
	return &Lasso{First: c[0], Loop: w.path}
}

// Cycle returns a shortest loop that begins with arc a, within component c, in which
// a begins and ends. It asks for no fairness.
func (s *Solver) Cycle(c []uint32, a Arc) *Lasso {
	w := s.walk(c, a.From)
	if w.along(a); w.at != a.From {
		w.back(a.From)
	}
	return &Lasso{First: a.From, Loop: w.path}
}

// A walk is a way through a strongly connected set of states.
type walk struct {
	*Solver
	set  uint32
	at   uint32
	path []Arc
	owed []Class // what has still to be settled: served, or, if weak, not enabled
}

func (s *Solver) walk(c []uint32, from uint32) *walk {
	return &walk{Solver: s, set: s.name(c), at: from}
}

// best returns the edge of state i that settles most, -1 if none settles any.
func (w *walk) best(i uint32) (place int) {
	edges := w.g.Edges(i)
	settled := make([]int, len(edges))
	w.within(i, w.set, w.owed, func(k int, _ Class) { settled[k]++ })
	place = -1
	for k, n := range settled {
		if w.stays(i, k, w.set) {
			n += len(w.absent(w.g.Edges(i)[k]))
		}
		if n > 0 && (place < 0 || n > settled[place]) {
			place = k
		}
		settled[k] = n
	}
	return place
}

// absent returns the weak classes that are owed and not enabled in state i.
func (w *walk) absent(i uint32) []Class {
	list := w.g.Enabled(nil, i)
	return slices.DeleteFunc(slices.Clone(w.owed), func(f Class) bool { return w.g.Strong(f) || has(list, f) })
}

// back walks a shortest way to a state, of at least one edge.
func (w *walk) back(to uint32) {
	w.to(func(i uint32) int { return slices.Index(w.g.Edges(i), to) })
}

// to walks to the nearest state for which last returns an edge, not -1, and along it.
func (w *walk) to(last func(i uint32) (place int)) {
	from := map[uint32]Arc{w.at: {}}
	for queue := []uint32{w.at}; ; queue = queue[1:] {
		i := queue[0] // there is one, since the set is strongly connected
		if place := last(i); place >= 0 {
			way := []Arc{{i, place}}
			for ; i != w.at; i = way[0].From {
				way = slices.Insert(way, 0, from[i])
			}
			for _, a := range way {
				w.along(a)
			}
			return
		}
		for k, to := range w.g.Edges(i) {
			if _, known := from[to]; !known && w.stays(i, k, w.set) {
				from[to] = Arc{i, k}
				queue = append(queue, to)
			}
		}
	}
}

// along takes an edge, and settles what that settles.
func (w *walk) along(a Arc) {
	w.path = append(w.path, a)
	settle := func(f Class) { w.owed = slices.DeleteFunc(w.owed, func(g Class) bool { return g == f }) }
	w.within(a.From, w.set, w.owed, func(place int, f Class) {
		if place == a.Place {
			settle(f)
		}
	})
	w.at = w.g.Edges(a.From)[a.Place]
	for _, f := range w.absent(w.at) {
		settle(f)
	}
}
