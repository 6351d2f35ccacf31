package check

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// A Swarm is several depth-first searches, each with a hash function, an order of
// actions and a greatest depth of its own. A search does not keep the states that it
// visited: each of them sets two bits of a table, and a state whose bits are set
// already counts as visited. The searches therefore skip states, but different ones.
//
// What a swarm finds is real: the trace is the stack of a search. What it does not
// find says little: it never covers a known part of the states.
type Swarm struct {
	Searches int           // default 16
	Bits     int           // the table of each search has 2^Bits bits. Default 27, that is 16 MiB
	Depth    int           // of the deepest search; others go half, a quarter, .. as deep. Default 10 000
	For      time.Duration // all searches together; 0: until each has ended
	Seed     uint64        // of what is random; equal seeds, equal searches
}

const (
	leastBits, mostBits = 16, 40
	mostSearches        = 1 << 20
	mostDepth           = 1 << 24
)

// complete fills in defaults and refuses what is impossible.
func (s *Swarm) complete(maxMemory int64, workers int) error {
	for _, n := range []struct {
		what               string
		value              *int
		normal, least, max int
	}{
		{"searches", &s.Searches, 16, 1, mostSearches},
		{"bits", &s.Bits, 27, leastBits, mostBits},
		{"depth", &s.Depth, 10_000, 1, mostDepth},
	} {
		if *n.value = cmp.Or(*n.value, n.normal); *n.value < n.least || *n.value > n.max {
			return fmt.Errorf("a swarm with %s %d: want %d to %d", n.what, *n.value, n.least, n.max)
		}
	}
	if s.For < 0 {
		return fmt.Errorf("a swarm for %v: want at least 0", s.For)
	}
	if n := min(workers, s.Searches); int64(n)<<(s.Bits-3) > maxMemory/2 {
		return fmt.Errorf("%d tables of 2^%d bits at the same time: more than half of the memory cap of %d MiB",
			n, s.Bits, maxMemory>>20)
	}
	return nil
}

// A fleet is a swarm under way.
type fleet struct {
	c     Config
	names []string
	begin time.Time

	stop atomic.Bool

	mu       sync.Mutex
	visited  int64
	steps    int64
	err      error
	ended    int // searches
	complete int // of these, that had nothing left to try
	deepest  int
	found    *finding
	foundAt  int    // the number of the search
	stopped  string // why all of them ended early, "" if they did not
	memory   int64
	reported time.Time
	model    string
}

// swarm searches with as many searches at the same time as there are workers, each
// in a space of its own.
func swarm(a protocol.Algorithm[any], c Config, names []string) (Verdict, error) {
	f := &fleet{c: c, names: names, begin: time.Now()}
	parallel(min(c.Workers, c.Swarm.Searches), c.Swarm.Searches, func(_, k int) {
		if !f.stop.Load() {
			f.search(k, newWorkerOf(a, c))
		}
	})
	if f.err != nil {
		return Verdict{}, f.err
	}
	return f.verdict(), nil
}

// search makes search k.
func (f *fleet) search(k int, x *worker) {
	s := f.c.Swarm
	at := time.Now()
	d := &diver{
		searcher: newSearcher(crew{x}, f.names), fleet: f,
		table: make(bitset, 1<<(s.Bits-6)), shift: 64 - s.Bits,
		salt:  scramble(s.Seed<<20 + uint64(k) + 1),
		depth: max(1, s.Depth>>(k%8)),
		rng:   rand.New(rand.NewPCG(s.Seed, uint64(k))),
		until: at.Add(s.For / time.Duration(s.Searches) * time.Duration(min(f.c.Workers, s.Searches))),
	}
	err := d.start(f.c.Timers)
	if err == nil && d.found == nil {
		d.dive()
		d.report()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.memory -= d.needs
	f.model = strings.Join(d.model(), ", ")
	if f.ended++; len(d.stack) == 0 && err == nil && d.found == nil {
		f.complete++
	}
	f.deepest = max(f.deepest, d.deepest)
	if err = errors.Join(err, d.claim); err != nil && f.err == nil {
		f.err = err
		f.stop.Store(true)
	}
	if d.found != nil && (f.found == nil || k < f.foundAt) {
		f.found, f.foundAt = d.found, k
		f.stop.Store(true)
	}
}

func (f *fleet) verdict() Verdict {
	r := &searcher{asked: f.names, begin: f.begin, transitions: f.steps, found: f.found}
	v := r.sum(false, f.visited)
	v.Searches = f.ended
	ending := fmt.Sprintf("%d of %d searches with nothing left to try", f.complete, f.ended)
	if f.found != nil {
		ending = "stopped at the first violation"
	} else if f.stopped != "" {
		ending += ", " + f.stopped
	} else if f.complete < f.ended {
		ending += fmt.Sprintf(", the others at the end of their share of %v", f.c.Swarm.For)
	}
	v.Bounds = fmt.Sprintf("%s, depth-first with 2 bits a state in tables of %d MiB, at most %d steps deep, "+
		"%s; coverage unknown", f.model, max(1, 1<<(f.c.Swarm.Bits-3)>>20), f.deepest, ending)
	return v
}

// A diver is one depth-first search.
type diver struct {
	*searcher
	fleet *fleet
	table bitset
	shift int
	salt  uint64
	depth int // at most
	rng   *rand.Rand
	until time.Time // where there is a limit

	stack   []frame
	vectors []uint32 // of the states on the stack
	todo    []action // of these
	list    []action

	visited, steps int64 // not reported yet
	taken          int64
	deepest        int
	needs          int64 // bytes, as of the last report
}

// A frame is a state on the stack.
type frame struct{ vector, todo int }

// places returns the places of the bits of a state.
func (d *diver) places(print uint64) (a, b uint64) {
	h := scramble(print + d.salt)
	return h >> d.shift, scramble(h) >> d.shift
}

// visitedBefore reports whether both bits of a state are set.
func (d *diver) visitedBefore(print uint64) bool {
	a, b := d.places(print)
	return d.table.has(a) && d.table.has(b)
}

func (d *diver) visit(print uint64) {
	a, b := d.places(print)
	d.table.set(a)
	d.table.set(b)
}

// dive searches from each root.
func (d *diver) dive() {
	for _, root := range d.roots {
		d.visit(d.print(root.state))
		d.visited++
		d.push(root, root.state)
		for ; len(d.stack) > 0; d.taken++ {
			if d.found != nil || d.claim != nil || d.stopped != "" {
				return
			}
			if d.step(root); d.taken%1024 == 0 {
				d.report()
			}
		}
	}
}

// step takes one action of the state on top of the stack, or leaves it.
func (d *diver) step(root root) {
	top := d.stack[len(d.stack)-1]
	st := d.vectors[top.vector:]
	if len(d.todo) == top.todo {
		d.stack, d.vectors = d.stack[:len(d.stack)-1], d.vectors[:top.vector]
		return
	}
	a := d.todo[len(d.todo)-1]
	d.todo = d.todo[:len(d.todo)-1]
	d.enter(st)
	o, _ := d.apply(&a)
	if d.visitedBefore(o.print) {
		return
	}
	d.visit(o.print)
	d.visited++
	if !o.built {
		d.build(&a, o.move)
	}
	if f := d.violates(d.worker, d.next); f != (history.Fault{}) {
		d.violated(f, d.along(root, append(d.path(), slices.Clone(d.next)), history.Fault{}))
		d.realFinding()
		return
	}
	if len(d.stack) < d.depth {
		d.push(root, d.next)
	}
}

// push puts a state on the stack, with the actions that lead to states not visited
// yet, in random order.
func (d *diver) push(root root, st []uint32) {
	d.stack = append(d.stack, frame{len(d.vectors), len(d.todo)})
	d.vectors = append(d.vectors, st...)
	d.deepest = max(d.deepest, len(d.stack)-1)
	st = d.vectors[len(d.vectors)-len(st):]
	d.enter(st)
	d.list = d.actions(d.list[:0])
	from, stuck := len(d.todo), true
	for _, a := range d.list {
		o, _ := d.apply(&a)
		d.steps++
		if f := d.serious(d.problem(d.wrong(o))); f != (history.Fault{}) {
			d.reach(a)
			d.violated(f, d.along(root, append(d.path(), slices.Clone(d.next)), f))
			return
		}
		if d.beyond(o) >= 0 {
			stuck = stuck && !a.verb.must()
			continue
		}
		stuck = stuck && !(a.verb.must() && (o.print != d.own || a.verb.accesses()))
		if !d.visitedBefore(o.print) {
			d.todo = append(d.todo, a)
		}
	}
	if stuck {
		if f := d.dead(st); f != (history.Fault{}) {
			d.violated(f, d.along(root, d.path(), history.Fault{}))
		}
	}
	left := d.todo[from:]
	d.rng.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
}

// path is the states on the stack, but for the root.
func (d *diver) path() (path [][]uint32) {
	for k := 1; k < len(d.stack); k++ {
		end := len(d.vectors)
		if k+1 < len(d.stack) {
			end = d.stack[k+1].vector
		}
		path = append(path, slices.Clone(d.vectors[d.stack[k].vector:end]))
	}
	return path
}

// report adds what was done since the last time, and sees whether to go on.
func (d *diver) report() {
	f := d.fleet
	all := "" // a reason for all searches to end
	if d.interrupted() {
		all = "interrupted"
	}
	if t := f.c.Swarm.For; t > 0 && all == "" && time.Now().After(d.until) {
		d.stopped = "at the end of its time"
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.visited += d.visited
	f.steps += d.steps
	d.visited, d.steps = 0, 0
	before := d.needs
	d.needs = int64(8*len(d.table)+4*cap(d.vectors)+12*cap(d.todo)+16*cap(d.stack)) + d.store.memory() + d.space.memory()
	if f.memory += d.needs - before; f.memory > f.c.MaxMemory/5*4 {
		all = fmt.Sprintf("stopped at the memory cap of %d MiB", f.c.MaxMemory>>20)
	}
	if all != "" && f.stopped == "" {
		f.stopped = all
		f.stop.Store(true)
	}
	if f.stop.Load() && d.stopped == "" {
		d.stopped = "because others ended"
	}
	if f.c.Progress != nil && time.Since(f.reported) > 250*time.Millisecond {
		f.reported = time.Now()
		f.c.Progress(Progress{
			States: f.visited, Transitions: f.steps, Depth: len(d.stack), Frontier: int64(len(d.todo)),
			Memory: f.memory, Elapsed: time.Since(f.begin),
		})
	}
}
