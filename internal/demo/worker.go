package demo

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

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/slots"
	"github.com/poundlock/poundlock/verify/history/recorder"
)

const (
	lock    = "demo"
	hold    = time.Millisecond
	reports = 20 * time.Millisecond // between two of them
)

// A spec is what a worker is told.
type spec struct {
	Table    string // of the servers
	Counter  string // path
	Unlocked bool
	Events   string // path, "" for none
	By       string
}

// A report is what a worker says of itself, one in a line.
type report struct {
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

// A worker counts until its standard input ends.
type worker struct {
	spec
	events *recorder.Recorder // nil: nobody wants them
	stop   atomic.Bool

	mu sync.Mutex
	r  report
}

// Work is the life of a worker process.
func Work(ctx context.Context, args []string) error {
	w := &worker{}
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &w.spec) != nil {
		return errors.New("demo: a worker is started by a demo, not by hand")
	}
	table, err := slots.Parse(w.Table)
	if err != nil {
		return err
	}
	if w.Events != "" {
		if w.events, err = recorder.Create(w.Events, recorder.Config{By: w.By}); err != nil {
			return err
		}
	}
	client, err := poundlock.Dial(ctx, poundlock.Config{Servers: table, ClockBound: ClockBound})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		defer cancel()
		for m := client.Mutex(lock); !w.stop.Load(); {
			w.round(ctx, m)
		}
	})
	go func() { // it ends with the process
		io.Copy(io.Discard, os.Stdin)
		w.stop.Store(true)
		time.AfterFunc(5*time.Second, cancel) // a lock that nobody gets
	}()
	out := json.NewEncoder(os.Stdout)
	tick := time.NewTicker(reports)
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

func (w *worker) report(last bool) report {
	at := clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.r.At, w.r.Last = at, last
	return w.r
}

// round waits for the lock and counts one.
func (w *worker) round(ctx context.Context, m *poundlock.Mutex) {
	began := time.Now()
	var waited time.Duration
	counted := false
	visit := w.events.Try("worker", lock)
	add := func(ctx context.Context, token uint64, lease func() time.Time) error {
		visit.Entered(ctx, token, lease)
		defer visit.Left()
		waited = time.Since(began)
		err := counter{w.Counter}.add(token, hold)
		counted = err == nil
		return err
	}
	var err error
	if w.Unlocked {
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
