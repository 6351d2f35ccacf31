package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Crew is the worker processes of one service.
type Crew struct {
	team    *Team[report]
	name    string
	workers []*member
	busy    []*member  // that have users of the present load
	servers []*Process // whose processor time counts as well
}

type member struct {
	*Process
	out      *json.Encoder
	ready    bool      // its first client is open
	progress *progress // of the present load; nil: not heard yet
	done     *results
}

const (
	openWithin = 30 * time.Second // for connections
	warmWithin = time.Minute      // until every user has had its lock
	stuckAfter = 30 * time.Second // without a grant
)

// StartCrew starts processes, and waits until each has a client open. args are
// those with which this program becomes a worker, name is for errors. Servers are
// processes whose processor time counts to an acquire.
func StartCrew(ctx context.Context, name string, processes int, servers []*Process, args ...string) (*Crew, error) {
	team, err := StartTeam[report](processes, name+", client process", func(int) []string { return args })
	if err != nil {
		return nil, err
	}
	c := &Crew{team: team, name: name, servers: servers}
	for _, p := range team.Members {
		c.workers = append(c.workers, &member{Process: p, out: json.NewEncoder(p.In)})
	}
	ctx, cancel := context.WithTimeoutCause(ctx, openWithin, fmt.Errorf("not connected after %v", openWithin))
	defer cancel()
	if err := c.all(ctx, c.workers, func(m *member) bool { return m.ready }); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (m *member) order(o order) error {
	if err := m.out.Encode(o); err != nil {
		m.Kill() // it has ended or ends, and its last words come with that
		return fmt.Errorf("bench: %s: %w", m.Name, errors.Join(m.Err(), err))
	}
	return nil
}

// all waits until something is so of every one of some workers.
func (c *Crew) all(ctx context.Context, workers []*member, so func(*member) bool) error {
	for slices.ContainsFunc(workers, func(m *member) bool { return !so(m) }) {
		if err := c.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// next takes what some worker says next. That one cannot go on is an error.
func (c *Crew) next(ctx context.Context) error {
	from, r, err := c.team.Next(ctx)
	m := c.workers[from]
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("bench: %s: %w", c.name, err)
	case err != nil:
		return fmt.Errorf("bench: %w", err)
	case r.Err != "":
		return errors.Join(fmt.Errorf("bench: %s: %s", m.Name, r.Err), Ended(c.servers))
	case r.Ready:
		m.ready = true
	case r.Progress != nil:
		m.progress = r.Progress
	case r.Done != nil:
		m.done = r.Done
	}
	return nil
}

// Ended says which of the processes ended, and why.
func Ended(all []*Process) error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p.Err())
	}
	return errors.Join(errs...)
}

// Close ends the worker processes.
func (c *Crew) Close() { c.team.Close() }
