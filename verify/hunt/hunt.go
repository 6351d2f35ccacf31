package hunt

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
)

// A Result is what a hunt found. But for Seconds, RunsPerS and how many runs fit
// into Config.For, it depends on the algorithm and the Config only.
type Result struct {
	Algorithm string `json:"algorithm"`
	Variant   string `json:"variant,omitempty"`
	Seed      uint64 `json:"seed"`
	First     int64  `json:"first"` // number of the first run
	Totals
	Violations []Violation `json:"violations"` // at most one: a hunt ends with it
	Beyond     int         `json:"beyond"`     // members by which the last runs exceeded the budget
	Seconds    float64     `json:"seconds"`
	RunsPerS   float64     `json:"runs_per_s"`
}

// Run hunts. An error wraps ErrConfig.
func Run[M any](a protocol.Algorithm[M], c Config) (Result, error) {
	return run(protocol.Erase(a), c)
}

func run(a protocol.Algorithm[any], c Config) (Result, error) {
	a.Share(len(c.Wants) > 0)
	err := c.complete(a.Info)
	if err == nil && c.FIFO && a.Stale != nil {
		err = errors.New("FIFO channels: its messages overtake each other")
	}
	if err != nil {
		return Result{}, fmt.Errorf("%w: %s: %w", ErrConfig, a.Name, err)
	}
	h := &hunter{alg: a, cfg: c, began: time.Now()}
	h.result = Result{
		Algorithm: a.Name, Variant: a.Variant, Seed: c.Seed, First: c.First, Violations: []Violation{}, Beyond: c.Beyond,
	}
	err = h.levels()
	r := &h.result
	r.Seconds = time.Since(h.began).Seconds()
	r.RunsPerS = float64(r.Runs) / max(r.Seconds, 1e-9)
	return *r, err
}

type hunter struct {
	alg      protocol.Algorithm[any]
	cfg      Config
	began    time.Time
	reported time.Time
	result   Result
}

// levels hunts at one excess over the budget, or with Break at each one from 1 on
// until there is a violation; each but the last has half of what is left.
func (h *hunter) levels() error {
	c := &h.cfg
	first := c.Beyond
	if c.Break {
		first = 1
	}
	for beyond := first; beyond <= c.Beyond; beyond++ {
		share := 2
		if beyond == c.Beyond {
			share = 1
		}
		runs, end := int64(math.MaxInt64), time.Time{}
		if c.Runs > 0 {
			runs = max(1, (c.Runs-h.result.Runs)/int64(share))
		}
		if c.For > 0 {
			end = time.Now().Add((c.For - time.Since(h.began)) / time.Duration(share))
		}
		h.result.Beyond = beyond
		found, err := h.level(beyond, runs, end)
		if err != nil {
			return err
		}
		if found != nil {
			return h.minimise(beyond, found)
		}
		if h.interrupted() {
			break
		}
	}
	return nil
}

// interrupted reports whether somebody wants the hunt to end at once.
func (h *hunter) interrupted() bool {
	select {
	case <-h.cfg.Done:
		return true
	default:
		return false
	}
}

// over reports whether no run is to begin any more.
func (h *hunter) over(end time.Time) bool {
	return h.interrupted() || !end.IsZero() && !time.Now().Before(end)
}

// An outcome is what one run showed.
type outcome struct {
	run int64
	Totals
	found *history.Fault
	err   error
}

// level makes runs until one of them violates a property, and returns that one.
// Outcomes count in the order of their numbers, so that it is the first one, and
// the totals are the same, whatever the number of workers.
func (h *hunter) level(beyond int, runs int64, end time.Time) (*outcome, error) {
	var (
		mu      sync.Mutex
		begun   int64 // runs
		due     = h.cfg.First
		waiting = map[int64]outcome{} // for earlier ones
		first   *outcome
		workers sync.WaitGroup
	)
	next := func() (run int64, more bool) {
		mu.Lock()
		defer mu.Unlock()
		if first != nil || begun == runs || h.over(end) {
			return 0, false
		}
		begun++
		return h.cfg.First + begun - 1, true
	}
	count := func(o outcome) {
		mu.Lock()
		defer mu.Unlock()
		waiting[o.run] = o
		for o, ready := waiting[due]; ready && first == nil; o, ready = waiting[due] {
			delete(waiting, due)
			due++
			if h.result.add(o.Totals); o.found != nil || o.err != nil {
				first = &o
			}
		}
		h.report(beyond, false)
	}
	for range h.cfg.Workers {
		workers.Go(func() {
			timed := newSimulators(h.alg)
			for run, more := next(); more; run, more = next() {
				count(h.one(timed, run, beyond))
			}
		})
	}
	workers.Wait()
	if first != nil && first.err != nil {
		return nil, first.err
	}
	return first, nil
}

func (h *hunter) report(beyond int, reducing bool) {
	if h.cfg.Progress == nil || !reducing && time.Since(h.reported) < 250*time.Millisecond {
		return
	}
	h.reported = time.Now()
	h.cfg.Progress(Progress{Totals: h.result.Totals, Beyond: beyond, Reducing: reducing, Elapsed: time.Since(h.began)})
}

// one makes one run.
func (h *hunter) one(timed *simulators, run int64, beyond int) outcome {
	p := h.cfg.draw(h.alg.Info, h.alg.Unsettled != nil, run, beyond)
	o := outcome{run: run}
	if p.timed {
		r, found, err := timed.simulate(&p)
		o.Totals = Totals{1, int64(r.Entries), r.Events}
		o.found, o.err = h.news(found), err
		return o
	}
	w := newWalker(newModel(h.alg, p.system), &p)
	w.walk()
	o.Totals, o.found = Totals{1, int64(w.Entries), int64(len(w.run))}, h.news(w.Found)
	return o
}

// news is what was found, or nil where that ends no hunt.
func (h *hunter) news(found *history.Fault) *history.Fault {
	if found != nil && h.cfg.Known && (slices.Contains(h.alg.Lacks, found.Property) || slices.Contains(h.alg.Refuted, found.Property)) {
		return nil
	}
	return found
}
