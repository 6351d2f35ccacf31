package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/slots"
)

// visit measures clients that each want something of a few shards.
func visit(ctx context.Context, p plan) (*table, error) {
	began := time.Now()
	c, err := start(ctx, p)
	if err != nil {
		return nil, err
	}
	defer c.close()
	t := newTable("%d clients that each acquire something of %d of %d shards about every second, for %v, with leases of %v",
		p.clients, p.few, p.shards, p.length, p.lease)
	t.value("all are connected after", time.Since(began).Seconds(), "s")
	each, err := c.count(ctx)
	if err != nil {
		return nil, err
	}
	// One more of a client, on average, leaves room for Dials that took too long.
	t.value("sessions that Dial makes", float64(total(each)), "").atMost(float64(2 * p.clients * members))

	if err := c.profile(ctx, true); err != nil {
		return nil, err
	}
	var visits []report
	_, err = c.spend(ctx, t, "", func() (err error) {
		visits, err = c.tell(ctx, c.clients, func(int) order { return order{Visit: p.length, Few: p.few} })
		return err
	})
	last := time.Now()
	if err != nil {
		return nil, err
	}
	if err := c.profile(ctx, false); err != nil {
		return nil, err
	}
	if each, err = c.count(ctx); err != nil {
		return nil, err
	}
	most := min(p.few+2, p.shards) * members * p.clients
	t.value("sessions with those that something is wanted of", float64(total(each)), "").atMost(float64(most))
	t.value("sessions with all servers would be", float64(len(c.table)*p.clients), "")
	var first, later []time.Duration
	for _, r := range visits {
		first, later = append(first, r.First...), append(later, r.Later...)
	}
	t.value("acquires", float64(len(first)+len(later)), "")
	t.value("acquires that failed", float64(sum(visits, func(r report) int { return r.Asked - r.Granted })), "").atMost(0).note(failure(visits))
	for what, times := range map[string][]time.Duration{"an acquire": later, "the first one in a shard": first} {
		if q := load.Of(times, time.Millisecond); q != nil {
			t.value(what+", median", q.P50, "ms")
			t.value(what+", 99 of 100", q.P99, "ms")
		}
	}
	if !p.rests {
		return t, nil
	}

	// Nothing was wanted since the last acquire.
	rest := max(time.Minute, 6*p.lease)
	if err := sleep(ctx, time.Until(last.Add(rest/2))); err != nil {
		return nil, err
	}
	if each, err = c.count(ctx); err != nil {
		return nil, err
	}
	t.value("sessions half of the time after that", float64(total(each)), "").atLeast(1)
	for err == nil && total(each) > 0 && time.Since(last) < 2*rest {
		if err = sleep(ctx, time.Second); err == nil {
			each, err = c.count(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	t.value("sessions after that", float64(total(each)), "").atMost(0)
	t.value("all have ended after", time.Since(last).Seconds(), "s").atMost(rest.Seconds() + 5)
	_, err = c.spend(ctx, t, "then: ", func() error { return sleep(ctx, p.length) })
	return t, err
}

func total(each []int) (k int) {
	for _, x := range each {
		k += x
	}
	return k
}

// visit has each client acquire and release, about every second, something of so few shards.
func (c *clients) visit(length time.Duration, few int) (r report) {
	shards := slots.Split(c.config.Servers)
	end := time.Now().Add(length)
	var mu sync.Mutex
	var all sync.WaitGroup
	for k, client := range c.all {
		all.Go(func() {
			var names []string
			for _, of := range rand.Perm(len(shards))[:few] {
				for i := 0; ; i++ {
					if name := fmt.Sprintf("visit/%s/%d/%d", c.prefix, k, i); shards.Of(name) == of {
						names = append(names, name)
						break
					}
				}
			}
			var visited []string
			for {
				time.Sleep(rand.N(min(2*time.Second, length)))
				if time.Now().After(end) {
					return
				}
				name := names[rand.N(few)]
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				began := time.Now()
				g, err := client.Mutex(name).Lock(ctx)
				took := time.Since(began)
				if err == nil {
					err = g.Unlock()
				}
				cancel()
				mu.Lock()
				r.Asked++
				switch {
				case err != nil:
					r.Failed = err.Error()
				case slices.Contains(visited, name):
					r.Granted++
					r.Later = append(r.Later, took)
				default:
					r.Granted++
					r.First = append(r.First, took)
					visited = append(visited, name)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return r
}
