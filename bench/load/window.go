package load

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	"github.com/poundlock/poundlock/internal/clock"
)

// A Window is what a load did in a time.
type Window struct {
	Length  time.Duration
	Users   []User
	Records [][]Record // by user
	Traffic float64    // bytes of all clients, both ways, for each grant of the load, warm-up included
	// CPU is the processor time of all processes of this machine that took part, in
	// units of 10 ms; 0 if unknown.
	CPU time.Duration
}

// A Load is what Crew.Run has the users do.
type Load struct {
	Users  []User
	WarmUp time.Duration // before the window, at least
	Length time.Duration // of the window, at least
	Grants int64         // in the window, at least
	// Show is told how far the window is; nil: nobody.
	Show func(grants int64, elapsed time.Duration)
}

// Apart are users of so many names, each of which nobody else wants.
func Apart(names, processes int) (users []User) {
	for i := range names {
		users = append(users, User{Process: i % processes, Name: fmt.Sprintf("bench-%d", i+1)})
	}
	return users
}

// Own are users like those of Apart, each at a client of its own.
func Own(names, processes int) []User {
	users := Apart(names, processes)
	for i := range users {
		users[i].Client = i / processes
	}
	return users
}

// Rivals all want one name.
func Rivals(processes, clients int) (users []User) {
	for p := range processes {
		for c := range clients {
			users = append(users, User{Process: p, Client: c, Name: "bench-1"})
		}
	}
	return users
}

// Run lets the users work until enough has been seen.
func (c *Crew) Run(ctx context.Context, l Load) (*Window, error) {
	shares := make([][]User, len(c.workers))
	for _, u := range l.Users {
		shares[u.Process] = append(shares[u.Process], u)
	}
	c.busy = nil
	for i, m := range c.workers {
		m.progress, m.done = nil, nil
		if len(shares[i]) == 0 {
			continue // what it says would cost a part of what is measured
		}
		c.busy = append(c.busy, m)
		if err := m.order(order{Users: shares[i]}); err != nil {
			return nil, err
		}
	}
	w := &Window{Users: l.Users}
	began := time.Now()
	cold := func(m *member) bool { return m.progress == nil || m.progress.Least == 0 }
	warm := func() bool { return time.Since(began) >= l.WarmUp && !slices.ContainsFunc(c.busy, cold) }
	late := fmt.Errorf("not every user got a lock within %v", warmWithin)
	soon, cancel := context.WithTimeoutCause(ctx, warmWithin+l.WarmUp, late)
	defer cancel()
	if err := c.until(soon, warm); err != nil {
		return nil, err
	}
	cpu, from := c.cpu(), clock.Now()
	// What is counted from here is in the window.
	if err := c.all(soon, c.busy, func(m *member) bool { return m.progress.At >= from }); err != nil {
		return nil, err
	}
	grants := c.grants()
	enough := func() bool {
		done, elapsed := c.grants()-grants, time.Duration(clock.Now()-from)
		if l.Show != nil {
			l.Show(done, elapsed)
		}
		return elapsed >= l.Length && done >= l.Grants && done > 0
	}
	if err := c.until(ctx, enough); err != nil {
		return nil, err
	}
	to := clock.Now()
	w.Length = time.Duration(to - from)
	w.CPU = c.cpu() - cpu
	return w, c.collect(ctx, w, window{from, to})
}

// until takes reports until ok, or until there has been no grant for too long.
func (c *Crew) until(ctx context.Context, ok func() bool) error {
	grants, last := int64(-1), time.Now()
	for !ok() {
		if g := c.grants(); g != grants {
			grants, last = g, time.Now()
		}
		stuck := fmt.Errorf("nobody got a lock for %v", stuckAfter)
		soon, cancel := context.WithDeadlineCause(ctx, last.Add(stuckAfter), stuck)
		err := c.next(soon)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// collect stops the load and takes the records in the window.
func (c *Crew) collect(ctx context.Context, w *Window, in window) error {
	for _, m := range c.busy {
		if err := m.order(order{Stop: &in}); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stuckAfter, fmt.Errorf("a load did not end within %v", stuckAfter))
	defer cancel()
	if err := c.all(ctx, c.busy, func(m *member) bool { return m.done != nil }); err != nil {
		return err
	}
	var all results
	for _, m := range c.busy {
		all.Grants += m.done.Grants
		all.Traffic += m.done.Traffic
	}
	w.Traffic = float64(all.Traffic) / float64(max(1, all.Grants))
	taken := make([]int, len(c.workers))
	for _, u := range w.Users {
		w.Records = append(w.Records, c.workers[u.Process].done.Records[taken[u.Process]])
		taken[u.Process]++
	}
	return nil
}

func (c *Crew) grants() (sum int64) {
	for _, m := range c.busy {
		if m.progress != nil {
			sum += m.progress.Grants
		}
	}
	return sum
}

// cpu is the processor time of all processes so far, 0 if it cannot be read.
func (c *Crew) cpu() (sum time.Duration) {
	all := slices.Clone(c.servers)
	for _, m := range c.workers {
		all = append(all, m.Process)
	}
	for _, p := range all {
		proc, err := procfs.NewProc(p.cmd.Process.Pid)
		if err != nil {
			return 0
		}
		stat, err := proc.Stat()
		if err != nil {
			return 0
		}
		sum += time.Duration(stat.CPUTime() * float64(time.Second))
	}
	return sum
}
