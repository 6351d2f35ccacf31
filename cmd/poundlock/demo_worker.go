package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/verify/history/recorder"
)

const (
	demoWorkerName = "demo-worker"
	demoLock       = "demo"
	demoHold       = time.Millisecond
	demoReports    = 20 * time.Millisecond
)

// demoClockBound is less than the default: all processes share one clock, and the
// first grants after a start wait for some of it.
const demoClockBound = time.Millisecond

// A demoReport is what a worker says of itself, one in a line.
type demoReport struct {
	At      int64 // an instant before the rest was read
	Counted uint64
	Rounds  uint64 // waits that have ended, also without the lock
	Lost    uint64 // locks that were lost
	Fenced  uint64 // times that the counter refused it
	Failed  uint64 // other errors
	Err     string // the last of these
	Longest time.Duration
	Last    bool // nothing follows
}

func demoWorkerCommand() *cobra.Command {
	var f clusterFlags
	var path, events string
	var unlocked bool
	c := &cobra.Command{
		Use:    demoWorkerName,
		Hidden: true,
		Args:   cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := f.config(c)
			if err != nil {
				return err
			}
			w := demoWorker{counter: demoCounter{path}, unlocked: unlocked}
			if events != "" {
				if w.events, err = recorder.Create(events, recorder.Config{By: "poundlock demo " + cli.Version()}); err != nil {
					return &cli.Status{Code: cli.ExitError, Err: err}
				}
			}
			if err := w.run(c.Context(), config); err != nil {
				return &cli.Status{Code: cli.ExitError, Err: err}
			}
			return nil
		},
	}
	f.register(c.Flags())
	c.Flags().StringVar(&path, "counter", "", "")
	c.Flags().StringVar(&events, "history", "", "")
	c.Flags().BoolVar(&unlocked, "without-lock", false, "")
	return c
}

// A demoWorker counts until its standard input ends.
type demoWorker struct {
	counter  demoCounter
	unlocked bool
	events   *recorder.Recorder // nil: nobody wants them
	stop     atomic.Bool

	mu sync.Mutex
	r  demoReport
}

func (w *demoWorker) run(ctx context.Context, config poundlock.Config) error {
	client, err := poundlock.Dial(ctx, config)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		defer cancel()
		for m := client.Mutex(demoLock); !w.stop.Load(); {
			w.round(ctx, m)
		}
	})
	go func() { // it ends with the process
		io.Copy(io.Discard, os.Stdin)
		w.stop.Store(true)
		time.AfterFunc(5*time.Second, cancel) // a lock that cannot be had
	}()
	out := json.NewEncoder(os.Stdout)
	tick := time.NewTicker(demoReports)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := out.Encode(w.report(false)); err != nil {
				return err
			}
		case <-ctx.Done():
			all.Wait()
			// Who hears the last report may kill this process before it does anything else.
			if err := w.events.Close(); err != nil {
				return err
			}
			return out.Encode(w.report(true))
		}
	}
}

func (w *demoWorker) report(last bool) demoReport {
	at := clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.r.At, w.r.Last = at, last
	return w.r
}

// round waits for the lock and counts one.
func (w *demoWorker) round(ctx context.Context, m *poundlock.Mutex) {
	began := time.Now()
	var waited time.Duration
	counted := false
	visit := w.events.Try("worker", demoLock)
	add := func(ctx context.Context, token uint64, lease func() time.Time) (err error) {
		visit.Entered(ctx, token, lease)
		defer visit.Left()
		waited = time.Since(began)
		counted, err = w.counter.add(token, demoHold)
		return err
	}
	var err error
	if w.unlocked {
		err = add(ctx, 0, nil)
	} else {
		err = m.Do(ctx, func(ctx context.Context, g *poundlock.Grant) error { return add(ctx, g.Token(), g.LeaseEnd) })
	}
	visit.Back()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.r.Rounds++
	if counted {
		w.r.Counted++
	}
	w.r.Longest = max(w.r.Longest, waited)
	if errors.Is(err, poundlock.ErrLost) {
		w.r.Lost++
	}
	switch {
	case err == nil, errors.Is(err, poundlock.ErrLost), ctx.Err() != nil:
	case errors.Is(err, errFenced):
		w.r.Fenced++
	default:
		w.r.Failed++
		w.r.Err = fmt.Sprint(err)
		time.Sleep(10 * time.Millisecond) // it may go on failing
	}
}
