package main

import (
	"context"
	"fmt"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/bench/load"
)

// book is the lock that all read.
const book = "book"

// read measures clients that are all inside one lock.
func read(ctx context.Context, p plan) (*table, error) {
	c, err := start(ctx, p)
	if err != nil {
		return nil, err
	}
	defer c.close()
	t := newTable("%d clients that share one lock, first %d of them, each for %v, with leases of %v", p.clients, p.few, p.length, p.lease)
	// What a session keeps for messages, once it has sent one, is not taken for the lock's.
	if _, err := c.tell(ctx, c.clients, func(int) order { return order{Once: true} }); err != nil {
		return nil, err
	}
	if err := sleep(ctx, p.lease); err != nil { // servers know these locks a little longer
		return nil, err
	}
	empty, err := c.tell(ctx, c.servers, func(int) order { return order{Weigh: true} })
	if err != nil {
		return nil, err
	}
	processes := len(c.clients.Members)
	few, err := c.readers(ctx, t, func(i int) int { return (p.few + processes - 1 - i) / processes })
	if err != nil {
		return nil, err
	}
	all, err := c.readers(ctx, t, func(int) int { return p.clients })
	if err != nil {
		return nil, err
	}
	if few != nil && all != nil {
		t.value("99 of 100 beside all, over that beside the few", all.P99/few.P99, "").atMost(3)
	}
	clients, err := c.tell(ctx, c.clients, func(int) order { return order{Look: true} })
	if err != nil {
		return nil, err
	}
	t.value("readers inside", float64(sum(clients, func(r report) int { return r.Held })), "").atLeast(float64(p.clients))
	t.value("readers that lost it", float64(sum(clients, func(r report) int { return r.Lost })), "").atMost(0).note(why(clients))
	full, err := c.tell(ctx, c.servers, func(int) order { return order{Weigh: true} })
	if err != nil {
		return nil, err
	}
	heap := func(r report) int { return int(r.Heap) }
	t.value("heap of it at a server", float64(sum(full, heap)-sum(empty, heap))/members/1e6, "MB").atMost(1)
	return t, nil
}

// readers has so many clients of each process share the lock, and measures acquires beside them that share it, too.
func (c *cluster) readers(ctx context.Context, t *table, of func(process int) int) (*load.Quantiles, error) {
	told, err := c.tell(ctx, c.clients, func(i int) order { return order{Read: of(i)} })
	if err == nil {
		told, err = c.tell(ctx, c.clients, func(int) order { return order{Look: true} })
	}
	if err != nil {
		return nil, err
	}
	inside := sum(told, func(r report) int { return r.Held })
	stop := c.beside(func(ctx context.Context, _ int) (*poundlock.Grant, error) {
		return c.probe.RWMutex(book).RLock(ctx)
	})
	err = sleep(ctx, c.plan.length)
	looks := stop()
	return t.beside(fmt.Sprintf("an acquire beside %d", inside), fmt.Sprintf("acquires beside %d that failed", inside), looks), err
}

// once has each client acquire and release a lock of its own.
func (c *clients) once() error {
	return load.Each(len(c.all), atOnce, func(k int) error {
		g, err := c.all[k].Mutex(fmt.Sprintf("once/%s/%d", c.prefix, k)).Lock(context.Background())
		if err != nil {
			return err
		}
		return g.Unlock()
	})
}

// read has the first of the clients share the lock, up to so many.
func (c *clients) read(of int) error {
	var more []int
	for k := range c.all[:min(of, len(c.all))] {
		if c.held[k] == nil {
			more = append(more, k)
		}
	}
	return load.Each(len(more), atOnce, func(i int) error {
		k := more[i]
		g, err := c.all[k].RWMutex(book).RLock(context.Background())
		c.held[k] = []*poundlock.Grant{g}
		return err
	})
}
