package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Options say how an experiment is run. None of them but Scale and Point changes the report.
type Options struct {
	Scale   Scale // default Default
	Point   int   // of the sweep, the only one to try; 0: all that are planned
	Workers int   // trials at a time; default: as many as processors
	Cache   string
	// Progress is called before the first trial and after each, by one goroutine at a time.
	Progress func(Progress)
}

// Progress says how far a run is. Total may grow: see Configuration.Most.
type Progress struct {
	Done, Cached, Total int // trials; those that the cache had are done, too
	// Made and Left are the costs of trials that this run has made itself and of those that
	// are left, as their configurations estimate them (Configuration.Cost); 0 where they do not.
	Made, Left time.Duration
	Workers    int
}

// MaxWorkers is the most trials at a time.
const MaxWorkers = 256

// ErrInterrupted says that a run ended early. What was done is in the cache.
var ErrInterrupted = errors.New("lab: interrupted")

// ErrCache says that trials could not be kept. The report that comes with it is whole.
var ErrCache = errors.New("lab: the cache cannot be written")

// Run runs e. If ctx ends, it waits for the trials that are under way and returns an
// error that wraps ErrInterrupted.
func Run(ctx context.Context, e Experiment, o Options) (Report, error) {
	if o.Scale == "" {
		o.Scale = Default
	}
	if o.Workers == 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), MaxWorkers)
	}
	if o.Workers < 1 || o.Workers > MaxWorkers {
		return Report{}, fmt.Errorf("lab: %d workers: want 1 to %d", o.Workers, MaxWorkers)
	}
	plan := e.Plan(o.Scale)
	if o.Point != 0 {
		if err := e.CheckPoint(o.Point); err != nil {
			return Report{}, err
		}
		for i := range plan.Configurations {
			plan.Configurations[i].Points = []int{o.Point}
		}
	}
	if err := plan.complete(); err != nil {
		return Report{}, fmt.Errorf("lab: %s: %w", e.Name, err)
	}
	kept, err := openCache(o.Cache)
	if err != nil {
		return Report{}, err
	}
	r := &run{experiment: e.Name, cache: kept, report: o.Progress, results: newResults(plan)}
	r.progress.Workers = o.Workers
	for {
		trials := r.results.more()
		if len(trials) == 0 {
			break
		}
		if err := r.round(ctx, trials, o.Workers); err != nil {
			return Report{}, err
		}
	}
	report := plan.Report(r.results)
	report.Experiment, report.Title, report.Scale = e.Name, e.Title, o.Scale
	report.Verdicts = report.count()
	return report, r.unkept
}

// CheckPoint returns an error that says why the experiment cannot be tried at one point alone.
func (e *Experiment) CheckPoint(point int) error {
	switch {
	case e.Most == 0:
		return fmt.Errorf("lab: %s: it is tried at all points of its plan, not at one alone", e.Name)
	case point < e.Least || point > e.Most:
		return fmt.Errorf("lab: %s: point %d: want %d to %d", e.Name, point, e.Least, e.Most)
	}
	return nil
}

type run struct {
	experiment string
	cache      *cache
	report     func(Progress)
	results    *Results

	mu       sync.Mutex
	progress Progress
	failed   error // the first one
	unkept   error // the first one
}

// round makes trials with so many workers. Which trials the next round has depends on all
// samples of this one, and not on the order in which they came.
func (r *run) round(ctx context.Context, trials []trial, workers int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.progress.Total += len(trials)
	for _, t := range trials {
		r.progress.Left += r.estimate(t)
	}
	if r.report != nil {
		r.report(r.progress)
	}
	var begun atomic.Int64
	var crew sync.WaitGroup
	for range workers {
		crew.Go(func() {
			for ctx.Err() == nil {
				k := int(begun.Add(1)) - 1
				if k >= len(trials) {
					return
				}
				if err := r.one(ctx, trials[k]); err != nil {
					cancel()
				}
			}
		})
	}
	crew.Wait()
	switch {
	case r.failed != nil:
		return r.failed
	case r.progress.Done < r.progress.Total:
		return fmt.Errorf("%w after %d of %d trials", ErrInterrupted, r.progress.Done, r.progress.Total)
	}
	return nil
}

// estimate is how long a trial takes, 0 where its configuration does not say.
func (r *run) estimate(t trial) time.Duration {
	c := &r.results.plan.Configurations[t.configuration]
	if c.Cost == nil {
		return 0
	}
	return c.Cost(c.Points[t.at])
}

func (r *run) one(ctx context.Context, t trial) error {
	c := &r.results.plan.Configurations[t.configuration]
	point, seed := c.Points[t.at], uint64(t.seed)+1
	key := trialKey{cmp.Or(r.results.plan.Trials, r.experiment), c.Name(), c.Setup, point, seed}
	sample, known := r.cache.get(key)
	var err, unkept error
	if !known {
		if sample, err = c.Try(ctx, point, seed); err == nil {
			unkept = r.cache.put(key, sample)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && ctx.Err() != nil:
		return err // it was told to stop
	case err != nil:
		err = fmt.Errorf("lab: %s: %s, %s=%d, seed %d: %w",
			r.experiment, c.Name(), r.results.plan.Sweep, point, seed, err)
		if r.failed == nil {
			r.failed = err
		}
		return err
	}
	if unkept != nil && r.unkept == nil {
		r.unkept = fmt.Errorf("%w: %w", ErrCache, unkept)
	}
	r.results.samples[t.configuration][t.at][t.seed] = sample
	r.progress.Done++
	r.progress.Left -= r.estimate(t)
	if known {
		r.progress.Cached++
	} else {
		r.progress.Made += r.estimate(t)
	}
	if r.report != nil {
		r.report(r.progress)
	}
	return nil
}
