package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// # Faults
//
// A cut and a partition are those of the links. A crash ends a node of which nobody hears: nothing gets through before it
// closes. A node that recovers begins a new life, which joins; one with amnesia begins again as if it were the first.

// why says what no fault of a network is.
var why = map[scenario.Verb]string{
	scenario.Pause:   "a user is no part of its process, and nothing would stop it",
	scenario.Suspect: suspicion,
	scenario.Restore: suspicion,
	scenario.Lapse:   suspicion,
}

const suspicion = "nodes suspect each other by what they hear: a cut or a partition keeps them apart"

// checkFaults refuses faults of a scenario that nothing here can carry out.
func checkFaults(c *sim.Config) error {
	for _, f := range c.Faults {
		if text := why[f.Verb]; text != "" {
			return fmt.Errorf("scenario: %s: not on a network: %s", f.Verb, text)
		}
	}
	return nil
}

// A change is one thing that a fault does.
type change struct {
	at time.Duration
	do func(ctx context.Context)
}

// changes are what all faults of the scenario do, in order.
func (r *run) changes() (all []change) {
	add := func(at time.Duration, do func(context.Context)) { all = append(all, change{at, do}) }
	for _, f := range r.c.Faults {
		id := int(f.Procs[0])
		cut := func(more int) func(context.Context) {
			return func(context.Context) { r.part(f, more) }
		}
		switch f.Verb {
		case scenario.Cut, scenario.Partition:
			add(f.At, cut(1))
			add(f.At+f.For, cut(-1))
		case scenario.Crash:
			add(f.At, func(context.Context) { r.crash(id) })
		case scenario.Recover:
			add(f.At, func(ctx context.Context) { r.recover(ctx, id) })
		case scenario.Drain:
			add(f.At, func(context.Context) { r.drain(id) })
		case scenario.Amnesia:
			add(f.At, func(context.Context) { r.forget(id) })
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return all
}

// fault carries out the scenario, until ctx ends.
func (r *run) fault(ctx context.Context) {
	for _, c := range r.changes() {
		select {
		case <-time.After(time.Until(r.began.Add(c.at))):
			c.do(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// part begins a cut or a partition, or ends it with -1.
func (r *run) part(f scenario.Step, more int) {
	if f.Verb == scenario.Cut {
		r.system.cut(int(f.Procs[0]), int(f.Procs[1]), more)
		return
	}
	for k := range r.system.links {
		if slices.Contains(f.Procs, protocol.ID(k.from)) != slices.Contains(f.Procs, protocol.ID(k.to)) {
			r.system.cut(k.from, k.to, more)
			r.system.cut(k.to, k.from, more)
		}
	}
}

// crash ends a process. A client that had entries left to make takes them over with a new life.
func (r *run) crash(id int) {
	if r.system.process(id) == nil {
		return
	}
	r.mu.Lock()
	r.totals.Crashes++
	var u *user
	if id >= r.first {
		u = r.users[id-r.first]
	}
	if u != nil && !u.gone {
		r.monitor.Crash(u.k, r.now())
		u.gone = true
		defer close(u.ended) // when the process is
	}
	r.mu.Unlock()
	r.system.end(id)
}

// recover begins a new life of a member that crashed.
func (r *run) recover(ctx context.Context, id int) {
	if r.system.process(id) != nil {
		return
	}
	if err := r.system.again(id, true); err != nil {
		r.fails(id, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.totals.Recoveries++
	if r.active > 0 && r.load.Left(id) > 0 {
		r.active++
		r.start(ctx, id, r.load.Thinks(id))
	}
}

// drain has a server give nothing more to anybody.
func (r *run) drain(id int) {
	if p := r.system.process(id); p != nil {
		p.drain()
	}
}

// forget lets a member lose its memory.
func (r *run) forget(id int) {
	if r.system.process(id) == nil {
		return
	}
	r.mu.Lock()
	r.totals.Amnesias++
	r.mu.Unlock()
	r.system.end(id)
	if err := r.system.again(id, false); err != nil {
		r.fails(id, err)
	}
}
