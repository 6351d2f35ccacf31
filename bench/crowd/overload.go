package main

import (
	"context"
	"fmt"
	"time"

	"github.com/poundlock/poundlock/bench/load"
)

const (
	// usersOfOne are those of each process that find out what the machine can do.
	usersOfOne = 64
	// calm is what an acquire beside takes at most when all is as usual.
	calm = 50 * time.Millisecond
	// afterwards is how long acquires beside are made after a load, at most twice as long as that.
	afterwards = 4 * time.Second
)

// overload measures what becomes of the locks of those who are there, and of the rate, when more is asked for than can be
// done.
func overload(ctx context.Context, p plan) (*table, error) {
	c, err := start(ctx, p)
	if err != nil {
		return nil, err
	}
	defer c.close()
	t := newTable("%d clients that ask, %v each, beside %d locks that are held by the first one of each process, with leases of %v",
		p.clients, p.length, p.held, p.lease)
	if p.held > 0 {
		if _, err := c.tell(ctx, c.clients, func(int) order { return order{Hold: p.held, Of: 1} }); err != nil {
			return nil, err
		}
	}
	processes := len(c.clients.Members)
	ask := func(o order) (rate float64, all []report, err error) {
		all, err = c.tell(ctx, c.clients, func(int) order { return o })
		return float64(sum(all, func(r report) int { return r.Granted })) / o.Ask.Seconds(), all, err
	}
	for i, k := range p.times {
		// Right before, for what the machine can do changes with what else it does.
		can, _, err := ask(order{Ask: p.length, Users: usersOfOne, Within: time.Minute})
		if err == nil && i == len(p.times)-1 {
			err = c.profile(ctx, true)
		}
		if err != nil {
			return nil, err
		}
		stop := c.beside(c.exclusive)
		rate, all, err := ask(order{Ask: p.length, Rate: k * can / float64(processes), Within: p.patience})
		over := time.Now()
		if err == nil {
			err = sleep(ctx, min(afterwards, 2*p.length))
		}
		looks := stop()
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("%gx", k)
		t.value(name+": one after the other", can, "a second")
		t.value(name+": asked for", float64(sum(all, func(r report) int { return r.Asked }))/p.length.Seconds(), "a second")
		t.value(name+": granted in time", rate, "a second").note(failure(all))
		t.value(name+": of the best", rate/max(rate, can), "").atLeast(0.8)
		all, err = c.tell(ctx, c.clients, func(int) order { return order{Look: true} })
		if err != nil {
			return nil, err
		}
		t.value(name+": held locks lost", float64(sum(all, func(r report) int { return r.Lost })), "").atMost(0).note(why(all))
		during, back := settle(looks, over)
		if during != nil {
			t.value(name+": an acquire beside, median", during.P50, "ms")
			t.value(name+": an acquire beside, 99 of 100", during.P99, "ms")
		}
		t.value(name+": as usual again after", back.Seconds(), "s").atMost(2)
	}
	if err := c.profile(ctx, false); err != nil {
		return nil, err
	}
	return t, nil
}

// failure is why some acquire was not granted.
func failure(all []report) string {
	for _, r := range all {
		if r.Failed != "" {
			return r.Failed
		}
	}
	return ""
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// settle divides acquires beside at the end of a load: how long those before took, and how long after it the last one began
// that took too long, or failed.
func settle(looks []look, over time.Time) (before *load.Quantiles, back time.Duration) {
	var times []time.Duration
	for _, l := range looks {
		if l.at.Before(over) {
			if l.err == nil {
				times = append(times, l.took)
			}
			continue
		}
		if l.err != nil || l.took > calm {
			back = l.at.Add(l.took).Sub(over)
		}
	}
	return load.Of(times, time.Millisecond), back
}
