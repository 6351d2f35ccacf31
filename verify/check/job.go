package check

import (
	"sync"
	"sync/atomic"

	"github.com/poundlock/poundlock/verify/history"
)

// A job is a run of states of one level with what their actions lead to. One worker
// fills it while others fill theirs; nobody adds to what they share. Then one
// goroutine goes over all jobs in the order of their states. So a search takes the
// same way, state by state, whatever the number of workers.
type job struct {
	first   uint32 // number of the first state
	states  [][]uint32
	prints  []uint64 // of the states
	ends    []int    // for each state the end of its records
	records []record
	vectors []uint32 // of the next states, one after the other

	// Of a job whose states are judged: the first one that violates a property, or -1.
	bad   int
	fault history.Fault
}

// A record is one action with where it leads.
type record struct {
	action
	outcome
	known bool // the outcome is: else a worker that is not frozen has to find out
	seen  bool // the next state was found before, or need not be
	isNew bool // it was not, and was added
	doubt bool // the claim that makes it an ample set is to be verified
	next  span // of job.vectors
	// number is that of the next state, where it was seen. Only of an exact store.
	number uint32
}

// jobStates is how many states a job has at most: their records and vectors fit the
// cache of one core.
const (
	jobStates     = 64
	jobsPerWorker = 8 // in one batch: so that none waits long for the others
)

// load fills jobs with the states from one number up to another, the first of which stands at p. It
// returns those that it filled, as far as there are enough, and the place behind their states.
func (s *store) load(jobs []job, p place, from, end int) ([]job, place) {
	n := 0
	for ; n < len(jobs) && from < end; n++ {
		size := min(jobStates, end-from)
		p = jobs[n].take(&s.vectors, p, uint32(from), size)
		from += size
	}
	return jobs[:n], p
}

// take fills j with states of the slab from p on, and returns the place behind them.
func (j *job) take(s *slab, p place, first uint32, n int) place {
	j.first, j.states, j.prints = first, j.states[:0], j.prints[:0]
	j.ends, j.records, j.vectors = j.ends[:0], j.records[:0], j.vectors[:0]
	for range n {
		var st []uint32
		st, p = s.next(p)
		j.states = append(j.states, st)
	}
	return p
}

// expand fills j with records.
func (j *job) expand(x *worker, s *store) {
	for _, st := range j.states {
		x.enter(st)
		j.prints = append(j.prints, x.own)
		acts, ample := x.choices()
		for k := range acts {
			a := &acts[k]
			r := record{action: *a}
			if ample || x.reduction.verify {
				r.doubt = x.doubtful(a, ample)
			}
			r.outcome, r.known = x.apply(a)
			if r.known && r.built {
				j.keep(&r, x.next)
			}
			j.records = append(j.records, r)
		}
		j.ends = append(j.ends, len(j.records))
	}
	if s.exact {
		j.vector(x)
		for i := range j.records {
			if r := &j.records[i]; r.known {
				r.number, r.seen = s.find(j.next(r), r.print)
			}
		}
		return
	}
	// A loop of its own, so that the processor waits for many places of the table at
	// the same time.
	for i := range j.records {
		r := &j.records[i]
		r.seen = r.known && s.has(r.print)
	}
	j.vector(x)
}

// vector builds the vectors of the next states that were not found.
func (j *job) vector(x *worker) {
	i := 0
	for k, st := range j.states {
		x.st = st
		for ; i < j.ends[k]; i++ {
			if r := &j.records[i]; r.known && !r.seen && !r.built {
				x.build(&r.action, r.move)
				j.keep(r, x.next)
			}
		}
	}
}

func (j *job) keep(r *record, next []uint32) {
	r.next.from = uint32(len(j.vectors))
	j.vectors = append(j.vectors, next...)
	r.next.to = uint32(len(j.vectors))
}

// next returns the vector of the next state.
func (j *job) next(r *record) []uint32 { return j.vectors[r.next.from:r.next.to] }

func (j *job) memory() int64 {
	return int64(24*cap(j.states) + 8*cap(j.prints) + 8*cap(j.ends) + 48*cap(j.records) + 4*cap(j.vectors))
}

// A crew is the workers of one search.
type crew []*worker

// share calls f for each number below n, in any order, for frozen workers.
func (c crew) share(n int, f func(x *worker, i int)) {
	freeze := func(frozen bool) {
		for _, x := range c {
			x.frozen, x.missing = frozen, false
		}
	}
	freeze(true)
	defer freeze(false)
	if len(c) > 1 && n > 1 {
		parallel(min(len(c), n), n, func(k, i int) { f(c[k], i) })
		return
	}
	for i := range n {
		f(c[0], i)
	}
}

// parallel calls f for each number i below n, on so many goroutines, the k-th of which says so.
func parallel(goroutines, n int, f func(k, i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for k := range goroutines {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(k, int(i))
			}
		})
	}
	all.Wait()
}
