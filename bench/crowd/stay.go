package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/bench/load"
)

// stay measures clients that hold what they hold, and do nothing.
func stay(ctx context.Context, p plan) (*table, error) {
	each := p.each
	if p.locks > 0 {
		each = (p.locks + p.clients - 1) / p.clients
	}
	began := time.Now()
	c, err := start(ctx, p)
	if err != nil {
		return nil, err
	}
	defer c.close()
	t := newTable("%d clients that hold %d locks each, for %v, with leases of %v", p.clients, each, p.length, p.lease)
	t.value("all are connected after", time.Since(began).Seconds(), "s")

	var emptyServers, emptyClients []report
	if each > 0 {
		if emptyServers, emptyClients, err = c.all(ctx, order{Weigh: true}); err != nil {
			return nil, err
		}
		began := time.Now()
		if _, err := c.tell(ctx, c.clients, func(int) order { return order{Hold: each, Of: p.clients} }); err != nil {
			return nil, err
		}
		t.value("locks acquired", float64(each*p.clients)/time.Since(began).Seconds(), "a second")
	}

	if err := c.profile(ctx, true); err != nil {
		return nil, err
	}
	half := func() error { return sleep(ctx, p.length/2) }
	all, err := c.spend(ctx, t, "", half)
	if err != nil {
		return nil, err
	}
	if p.part == "idle" {
		all.atMost(100)
	}
	stop := c.beside(c.exclusive)
	_, err = c.spend(ctx, t, "with acquires beside: ", half)
	looks := stop()
	if err != nil {
		return nil, err
	}
	if err := c.profile(ctx, false); err != nil {
		return nil, err
	}
	t.beside("an acquire beside", "acquires beside that failed", looks)
	_, clients, err := c.all(ctx, order{Look: true})
	if err != nil {
		return nil, err
	}
	alive, err := c.count(ctx)
	if err != nil {
		return nil, err
	}
	t.value("sessions at the server with the fewest", float64(slices.Min(alive)), "").atLeast(float64(p.clients)).note(fmt.Sprint(alive))
	if each > 0 {
		lost := sum(clients, func(r report) int { return r.Lost })
		t.value("locks held", float64(sum(clients, func(r report) int { return r.Held })), "")
		t.value("locks lost", float64(lost), "").atMost(0).note(why(clients))
		fullServers, fullClients, err := c.all(ctx, order{Weigh: true})
		if err != nil {
			return nil, err
		}
		heap := func(r report) int { return int(r.Heap) }
		locks := float64(each * p.clients)
		server := t.value("heap a lock and server", float64(sum(fullServers, heap)-sum(emptyServers, heap))/locks/members, "B")
		client := t.value("heap a lock at its client", float64(sum(fullClients, heap)-sum(emptyClients, heap))/locks, "B")
		if p.part == "held" {
			client.atMost(1024)
			server.atMost(450)
		}
	}
	return t, nil
}

// spend adds the processor time that servers and clients take while do runs, a client and second.
func (c *cluster) spend(ctx context.Context, t *table, when string, do func() error) (all *row, err error) {
	servers, clients, err := c.all(ctx, order{})
	if err != nil {
		return nil, err
	}
	from := time.Now()
	if err := do(); err != nil {
		return nil, err
	}
	length := time.Since(from)
	servers2, clients2, err := c.all(ctx, order{})
	if err != nil {
		return nil, err
	}
	perClient := func(d time.Duration) float64 {
		return float64(d.Microseconds()) / length.Seconds() / float64(c.plan.clients)
	}
	ofServers, ofClients := processorTimes(servers2)-processorTimes(servers), processorTimes(clients2)-processorTimes(clients)
	t.value(when+"processor time of the servers, a client and second", perClient(ofServers), "us")
	t.value(when+"processor time of its own, a client and second", perClient(ofClients), "us")
	return t.value(when+"processor time, a client and second", perClient(ofServers+ofClients), "us"), nil
}

// why is why some lock was lost.
func why(all []report) (text string) {
	for _, r := range all {
		if r.Why != "" {
			return r.Why
		}
	}
	return ""
}

// beside adds how long acquires beside took, and how many failed.
func (t *table) beside(what, failures string, looks []look) *load.Quantiles {
	var times []time.Duration
	failed := 0
	for _, l := range looks {
		if l.err != nil {
			failed++
			continue
		}
		times = append(times, l.took)
	}
	q := load.Of(times, time.Millisecond)
	if q != nil {
		t.value(what+", median", q.P50, "ms")
		t.value(what+", 99 of 100", q.P99, "ms").atMost(50)
	}
	t.value(failures, float64(failed), "").atMost(0)
	return q
}
