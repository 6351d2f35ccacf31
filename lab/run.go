package lab

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Options say how an experiment is run. None of them but Scale changes the report.
type Options struct {
	Scale   Scale // default Default
	Workers int   // trials at a time; default: as many as processors
	Cache   string
	// Progress is called after each trial, by one goroutine at a time: how many are
	// done, and how many of those the cache had.
	Progress func(done, cached, total int)
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
	if err := plan.complete(); err != nil {
		return Report{}, fmt.Errorf("lab: %s: %w", e.Name, err)
	}
	kept, err := openCache(o.Cache)
	if err != nil {
		return Report{}, err
	}
	r := &run{experiment: e.Name, cache: kept, progress: o.Progress, results: newResults(plan)}
	if err := r.all(ctx, o.Workers); err != nil {
		return Report{}, err
	}
	report := plan.Report(r.results)
	report.Experiment, report.Title, report.Scale = e.Name, e.Title, o.Scale
	report.Verdicts = report.count()
	return report, r.unkept
}

// A run is an experiment under way.
type run struct {
	experiment string
	cache      *cache
	progress   func(done, cached, total int)
	results    *Results

	mu           sync.Mutex
	done, cached int
	failed       error // the first one
	unkept       error // the first one
}

// all makes all trials with so many workers.
func (r *run) all(ctx context.Context, workers int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	trials := r.results.trials()
	queue := make(chan trial)
	var crew sync.WaitGroup
	for range min(workers, len(trials)) {
		crew.Go(func() {
			for t := range queue {
				if err := r.one(ctx, t, len(trials)); err != nil {
					cancel()
				}
			}
		})
	}
feed:
	for _, t := range trials {
		select {
		case queue <- t:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	crew.Wait()
	switch {
	case r.failed != nil:
		return r.failed
	case r.done < len(trials):
		return fmt.Errorf("%w after %d of %d trials", ErrInterrupted, r.done, len(trials))
	}
	return nil
}

// one makes one trial, or finds it in the cache.
func (r *run) one(ctx context.Context, t trial, total int) error {
	c := &r.results.plan.Configurations[t.configuration]
	key := trialKey{r.experiment, c.Name(), c.Setup, t.point, t.seed}
	sample, known := r.cache.get(key)
	var err, unkept error
	if !known {
		if sample, err = c.Try(ctx, t.point, t.seed); err == nil {
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
			r.experiment, c.Name(), r.results.plan.Sweep, t.point, t.seed, err)
		if r.failed == nil {
			r.failed = err
		}
		return err
	}
	if unkept != nil && r.unkept == nil {
		r.unkept = fmt.Errorf("%w: %w", ErrCache, unkept)
	}
	r.results.samples[t.index] = sample
	if r.done++; known {
		r.cached++
	}
	if r.progress != nil {
		r.progress(r.done, r.cached, total)
	}
	return nil
}
