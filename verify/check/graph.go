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
	edges  []uint32      // scratch
	stays  bool          // who is inside need not leave
}

// graphBytes is what a graph needs for each state beside 4 bytes for each edge.
const graphBytes = 8 + 4 + 2

// newGraph goes over all states that were found. Of those that were not expanded it
// knows what is possible, but not where that leads.
func newGraph(r *searcher) *graph {
	n := r.store.len()
	g := &graph{searcher: r, idle: make(bitset, (n+63)/64), still: make(bitset, (n+63)/64)}
	for from := (place{}); g.Len() < n && !r.interrupted(); r.report() {
		var jobs []job
		jobs, from = r.store.load(r.jobs, from, g.Len(), n)
		r.crew.share(len(jobs), r.expandJob)
		for i := range jobs {
			g.take(&jobs[i])
		}
	}
	return g
}

// take adds the edges of the states of a job. Those that lead beyond a bound lead nowhere.
func (g *graph) take(j *job) {
	i := 0
	for k, end := range j.ends {
		s := j.first + uint32(k)
		expanded := int(s) < g.expanded
		g.edges = g.edges[:0]
		idle, still := true, expanded
		for _, rec := range j.records[i:end] {
			to := lasso.Nowhere
			if rec.seen {
				to = rec.number
			}
			if rec.verb.must() {
				idle, still = false, still && to == s
			}
			if expanded {
				g.edges = append(g.edges, to)
			}
		}
		i = end
		g.places.add(g.rows.add(g.edges))
		if idle {
			g.idle.set(uint64(s))
		}
		if still {
			g.still.set(uint64(s))
		}
	}
}

// Len implements lasso.Graph.
func (g *graph) Len() int { return g.places.n }

// Edges implements lasso.Graph.
func (g *graph) Edges(s uint32) []uint32 { return g.rows.at(g.places.at(int(s))) }

// Ends implements lasso.Graph: nothing that must happen is possible, and no timer is
// set, which where timers never fire would be waited for.
func (g *graph) Ends(s uint32) bool {
	idle := g.idle.has(uint64(s)) || g.stays && len(g.Enabled(nil, s)) == 0
	return idle && !g.armed(g.store.state(s))
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
		if g.owed(a, g.stays) {
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
		o, _ := g.apply(&a)
		for _, c := range some {
			if g.serves(a, o, c) {
				f(k, c)
			}
		}
	}
}

// owed reports whether an action of the state entered must happen. Where who is inside stays, its exit need not.
func (x *worker) owed(a action, stays bool) bool {
	return a.verb.must() && !(stays && a.verb == exit && x.summaries[x.st[1+a.a]].section == protocol.InCrit)
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
		p, _ := x.subject(x.st, &a)
		return o.moved && p == int(c>>40&0xff) && slices.Contains(x.sets(&x.moves[o.move]), uint32(c))
	case deliver:
		return x.shifting && slices.ContainsFunc(x.messages.lows[uint32(c)], func(l low) bool { return x.by[l.counter] > 0 })
	}
	return false
}

// Strong implements lasso.Graph. A step that must happen stays possible until it is taken,
// or its class is served; but a bounded time-out waits for messages, again and again.
func (s *space) Strong(c lasso.Class) bool { return s.bounded && verb(c>>48) == timeout }

// section is the section of user u in a state.
func (g *graph) section(s uint32, u int) protocol.Section {
	return g.summaries[g.store.state(s)[1+u]].section
}
