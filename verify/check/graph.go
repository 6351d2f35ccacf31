package check

import (
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check/internal/lasso"
)

// A graph is what an exact search has found, with all its steps: what liveness is
// decided on. Edges are the actions of a state, in their order.
//
// Only the ends of edges are kept. What an edge does is computed again for the few
// states where that matters: those in which a property may be violated for ever.
type graph struct {
	*searcher
	rows   slab
	places blocks[place] // of the rows, by state
	idle   bitset        // of states: nothing is possible that must happen
	still  bitset        // the same, or it does not change the state
}

// A row is the edges of some states.
type row struct {
	ends  []uint32
	until []int // for each state the end of its edges
	idle  []bool
	still []bool
}

// graphBytes is what a graph needs for each state beside 4 bytes for each edge.
const graphBytes = 8 + 4 + 2

// newGraph goes over all states that were found. Of those that were not expanded it
// knows what is possible, but not where that leads.
func newGraph(r *searcher) *graph {
	n := r.store.len()
	g := &graph{searcher: r, idle: make(bitset, (n+63)/64), still: make(bitset, (n+63)/64)}
	rows := make([]row, len(r.jobs))
	for first := 0; first < n; {
		share := min(len(rows), (n-first+jobStates-1)/jobStates)
		r.crew.share(share, func(x *worker, i int) {
			from := first + i*jobStates
			rows[i].fill(r, x, from, min(from+jobStates, n))
		})
		for i := range share {
			g.take(&rows[i], uint32(first+i*jobStates))
		}
		first += share * jobStates
		if r.report(); r.interrupted() {
			break
		}
	}
	return g
}

// fill computes the edges of the states from one number up to another.
func (w *row) fill(r *searcher, x *worker, from, to int) {
	w.ends, w.until, w.idle, w.still = w.ends[:0], w.until[:0], w.idle[:0], w.still[:0]
	for i := from; i < to; i++ {
		x.enter(r.store.state(uint32(i)))
		x.acts = x.actions(x.acts[:0])
		still := i < r.expanded
		for _, a := range x.acts {
			if i < r.expanded {
				to := r.target(x, a)
				w.ends = append(w.ends, to)
				still = still && (to == uint32(i) || !a.verb.must())
			}
		}
		w.still = append(w.still, still)
		w.until = append(w.until, len(w.ends))
		w.idle = append(w.idle, !slices.ContainsFunc(x.acts, func(a action) bool { return a.verb.must() }))
	}
}

// target is the state to which an action leads, if the search went there: it did not
// beyond a bound.
func (r *searcher) target(x *worker, a action) uint32 {
	o, _ := x.apply(a) // known since the state was expanded
	if !o.built {
		x.build(a, o.move)
	}
	if n, found := r.store.find(x.next, o.print); found {
		return n
	}
	return lasso.Nowhere
}

// take adds rows, the first of which is that of a state.
func (g *graph) take(w *row, first uint32) {
	from := 0
	for k, until := range w.until {
		g.places.add(g.rows.add(w.ends[from:until]))
		if w.idle[k] {
			g.idle.set(uint64(first) + uint64(k))
		}
		if w.still[k] {
			g.still.set(uint64(first) + uint64(k))
		}
		from = until
	}
}

// Len implements lasso.Graph.
func (g *graph) Len() int { return g.places.n }

// Edges implements lasso.Graph.
func (g *graph) Edges(s uint32) []uint32 { return g.rows.at(g.places.at(int(s))) }

// Ends implements lasso.Graph: nothing that must happen is possible, and no timer is
// set, which where timers never fire would be waited for.
func (g *graph) Ends(s uint32) bool {
	return g.idle.has(uint64(s)) && !g.armed(g.store.state(s))
}

// rests reports whether nothing that must happen changes a state, and no timer is set.
func (g *graph) rests(s uint32) bool {
	return g.still.has(uint64(s)) && !g.armed(g.store.state(s))
}

// Enabled implements lasso.Graph.
func (g *graph) Enabled(list []lasso.Class, s uint32) []lasso.Class {
	g.enter(g.store.state(s))
	g.acts = g.possible(g.acts[:0])
	for _, a := range g.acts {
		if a.verb.must() {
			list = append(list, g.class(a))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Served implements lasso.Graph.
func (g *graph) Served(s uint32, some []lasso.Class, f func(k int, c lasso.Class)) {
	g.enter(g.store.state(s))
	g.acts = g.actions(g.acts[:0])
	for k, a := range g.acts {
		o, _ := g.apply(a)
		for _, c := range some {
			if g.serves(a, o, c) {
				f(k, c)
			}
		}
	}
}

// class is the class of a step that must happen: the exit of one user, one timer of
// one process, the suspicion or restoration of one process by another, the accesses of one
// process to one register, and one message in flight. With FIFO channels that is the first one of its channel.
func (x *worker) class(a action) lasso.Class {
	if a.verb.accesses() {
		a.arg = 0 // whatever is found
	}
	return lasso.Class(a.verb)<<48 | lasso.Class(a.a)<<40 | lasso.Class(a.b)<<32 | lasso.Class(a.arg)
}

// serves reports whether action a, which was just applied, serves class c.
//
//   - It is a step of c. A delivery that leaves its message in flight is none, for only
//     one that consumes it shows that no copy was forgotten; unless the message stays,
//     because it is sent again all the time.
//   - It sets the timer of c anew: the time until it must fire starts again.
//   - It moves a counter that the message of c carries. A state calls messages by the
//     values in it, so that the message of this name is another one after each such
//     step. None stays for ever where that happens again and again: its value falls,
//     and cannot fall below the least.
func (x *worker) serves(a action, o outcome, c lasso.Class) bool {
	if x.class(a) == c && (!a.keep || x.messages.all[a.arg].stays(x.forgets)) {
		return true
	}
	switch verb(c >> 48) {
	case timeout:
		p, _ := x.subject(x.st, a)
		return o.moved && p == int(c>>40&0xff) && slices.Contains(x.sets(&x.moves[o.move]), uint32(c))
	case deliver:
		return x.shifting && slices.ContainsFunc(x.messages.lows[uint32(c)], func(l low) bool { return x.by[l.counter] > 0 })
	}
	return false
}

// Strong implements lasso.Graph. A step that must happen stays possible until it is taken,
// or its class is served; but a bounded time-out waits for messages, again and again.
func (g *graph) Strong(c lasso.Class) bool { return g.strong(c) }

func (s *space) strong(c lasso.Class) bool { return s.bounded && verb(c>>48) == timeout }

// section is the section of user u in a state.
func (g *graph) section(s uint32, u int) protocol.Section {
	return g.summaries[g.store.state(s)[1+u]].section
}
