package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Crew is the worker processes of one service.
type Crew struct {
	name    string
	workers []*member
	servers []*Process // whose processor time counts as well
	events  chan event
}

// A member is one worker process.
type member struct {
	*Process
	out      *json.Encoder
	ended    bool
	users    int       // of the present load
	progress *progress // of it; nil: not heard yet
	done     *results
}

// An event is what one worker said, or the end of it.
type event struct {
	from int
	report
	err error
}

// Limits of waiting.
const (
	openWithin = 30 * time.Second // for connections
	warmWithin = time.Minute      // until every user has had its lock
	stuckAfter = 30 * time.Second // without a grant
)

// StartCrew starts processes with clients each, and waits until all are open. args
// are those with which this program becomes a worker, name is for errors. Servers
// are processes whose processor time counts to an acquire.
func StartCrew(
	ctx context.Context, name string, processes, clients int, spec []byte, servers []*Process, args ...string,
) (*Crew, error) {
	c := &Crew{name: name, servers: servers, events: make(chan event, processes)}
	for i := range processes {
		p, err := StartTalking(fmt.Sprintf("%s, client process %d", name, i+1), args...)
		if err != nil {
			c.Close()
			return nil, err
		}
		m := &member{Process: p, out: json.NewEncoder(p.In)}
		c.workers = append(c.workers, m)
		go c.listen(i, m)
	}
	if err := c.open(ctx, spec, clients); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// listen passes on what a worker says. It ends with the process, whose parent must
// go on taking events until then: Close does.
func (c *Crew) listen(i int, m *member) {
	in := json.NewDecoder(m.Out)
	for {
		var r report
		if err := in.Decode(&r); err != nil {
			<-m.Done()
			c.events <- event{from: i, err: m.Err()}
			return
		}
		c.events <- event{from: i, report: r}
	}
}

func (c *Crew) open(ctx context.Context, spec []byte, clients int) error {
	if err := c.order(order{Open: &opening{spec, clients}}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, openWithin, fmt.Errorf("not connected after %v", openWithin))
	defer cancel()
	for ready := 0; ready < len(c.workers); {
		e, err := c.next(ctx)
		if err != nil {
			return err
		}
		if e.Ready {
			ready++
		}
	}
	return nil
}

// order tells every worker the same.
func (c *Crew) order(o order) error {
	for _, m := range c.workers {
		if err := m.out.Encode(o); err != nil {
			m.Kill() // it has ended or ends, and its last words come with that
			return fmt.Errorf("bench: %s: %w", m.Name, errors.Join(m.Err(), err))
		}
	}
	return nil
}

// next is what some worker says next. That one cannot go on is an error.
func (c *Crew) next(ctx context.Context) (event, error) {
	select {
	case e := <-c.events:
		m := c.workers[e.from]
		switch {
		case e.err != nil:
			m.ended = true
			return e, fmt.Errorf("bench: %w", e.err)
		case e.Err != "":
			return e, errors.Join(fmt.Errorf("bench: %s: %s", m.Name, e.Err), Ended(c.servers))
		}
		if e.Progress != nil {
			m.progress = e.Progress
		}
		return e, nil
	case <-ctx.Done():
		return event{}, fmt.Errorf("bench: %s: %w", c.name, context.Cause(ctx))
	}
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
func (c *Crew) Close() {
	running := 0
	for _, m := range c.workers {
		m.In.Close()
		if !m.ended {
			running++
		}
	}
	limit := time.NewTimer(2 * time.Second)
	defer limit.Stop()
	killed := limit.C
	for running > 0 {
		select {
		case e := <-c.events:
			if e.err != nil {
				running--
			}
		case <-killed:
			for _, m := range c.workers {
				m.cmd.Process.Kill()
			}
			killed = nil
		}
	}
	for _, m := range c.workers {
		m.Kill() // it has ended; its pipe is closed
	}
}
