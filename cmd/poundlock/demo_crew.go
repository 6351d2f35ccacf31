package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/poundlock/poundlock/bench/load"
)

// A demoCrew is the workers of a demo.
type demoCrew struct {
	workers []*load.Process
	reports []demoReport // the last of each
	ended   []bool
	events  chan demoEvent
}

// A demoEvent is a report of one worker, or the end of it.
type demoEvent struct {
	from int
	demoReport
	err error
}

// demoPatience is for workers that shall start, say something, or end.
const demoPatience = 20 * time.Second

// startDemoCrew starts n workers, which write event files into a directory if there is
// one.
func startDemoCrew(n int, table string, counter demoCounter, unlocked bool, dir string) (*demoCrew, error) {
	c := &demoCrew{reports: make([]demoReport, n), ended: make([]bool, n), events: make(chan demoEvent, n)}
	args := []string{
		demoWorkerName, "--servers", table, "--clock-bound", demoClockBound.String(), "--counter", counter.path,
		fmt.Sprintf("--without-lock=%t", unlocked),
	}
	for i := range n {
		own := slices.Clone(args)
		if dir != "" {
			own = append(own, "--history", filepath.Join(dir, fmt.Sprintf("worker-%d.jsonl", i+1)))
		}
		p, err := load.StartTalking(fmt.Sprintf("worker %d", i+1), own...)
		if err != nil {
			c.close()
			return nil, err
		}
		c.workers = append(c.workers, p)
		go c.listen(i, p)
	}
	return c, nil
}

func (c *demoCrew) listen(i int, p *load.Process) {
	in := json.NewDecoder(p.Out)
	for {
		var r demoReport
		if err := in.Decode(&r); err != nil {
			<-p.Done()
			c.events <- demoEvent{from: i, err: p.Err()}
			return
		}
		c.events <- demoEvent{from: i, demoReport: r}
	}
}

// next takes one report.
func (c *demoCrew) next(ctx context.Context) error {
	silent := time.NewTimer(demoPatience)
	defer silent.Stop()
	select {
	case e := <-c.events:
		if e.err != nil {
			c.ended[e.from] = true
			if c.reports[e.from].Last {
				return nil
			}
			return e.err
		}
		c.reports[e.from] = e.demoReport
		return nil
	case <-silent.C:
		return fmt.Errorf("no worker has said anything for %v", demoPatience)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish has the workers end what they have begun, and takes their last reports.
func (c *demoCrew) finish() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), demoPatience, errors.New("a worker does not end"))
	defer cancel()
	for _, p := range c.workers {
		p.In.Close()
	}
	for i := range c.workers {
		for !c.reports[i].Last {
			if err := c.next(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// close ends the workers, whatever they do.
func (c *demoCrew) close() {
	for i, p := range c.workers {
		go p.Kill()
		for !c.ended[i] {
			if e := <-c.events; e.err != nil {
				c.ended[e.from] = true
			}
		}
		p.Kill()
	}
}
