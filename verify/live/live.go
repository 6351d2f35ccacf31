package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/verify/workload"
	"github.com/poundlock/poundlock/verify/world"
)

// patience is how long all users that have entries to make may wait, beside three leases and a thousand delays, before a run
// is stuck; and how long processes may take to meet.
const patience = 30 * time.Second

// Run runs a on a network, as c says. Errors that wrap sim.ErrConfig say what of it a network, or the algorithm, does not have;
// whatever goes wrong between processes is in Result.Violations. Each process is a program of its own where program, which is not nil
// then, makes one that calls Process with its standard input and output.
func Run[M any](ctx context.Context, a protocol.Algorithm[M], c sim.Config, program func() *exec.Cmd) (sim.Result, error) {
	a.Share(c.Wants != nil || c.Groups != 0)
	err := refuse(a.Info, &c)
	var rules *world.Rules
	if err == nil {
		rules, err = c.Complete(a.Info)
	}
	if err == nil {
		err = tooMany(a.Info, &c) // clients by default, too
	}
	if err != nil {
		return sim.Result{}, fmt.Errorf("%w: %s: %w", sim.ErrConfig, a.Name, err)
	}
	r := newRun(c, rules)
	return r.run(ctx, node.HostOf(a), program)
}

// A run is what users do, and what is seen of them.
type run struct {
	c      sim.Config
	rules  *world.Rules
	first  int // the process of user 0
	system system
	began  time.Time // all processes have met: constant from then on
	crew   sync.WaitGroup

	mu      sync.Mutex
	load    workload.Users
	users   []*user // in their present lives; nil: it never tries
	active  int     // users that have entries to make
	done    chan struct{}
	monitor history.Monitor
	last    int64 // when something happened to a user
	totals  sim.Totals
	reasons map[string]uint64
	cancel  context.CancelFunc // ends all users; nil: they have not begun
	over    bool               // nothing counts any more
}

func newRun(c sim.Config, rules *world.Rules) *run {
	r := &run{c: c, rules: rules, users: make([]*user, len(c.Entries)), done: make(chan struct{})}
	if rules.Users == protocol.Clients {
		r.first = c.N
	}
	r.load.Reset(c.Workload())
	r.monitor.Reset(len(c.Entries))
	r.monitor.Name = func(k int) string { return r.name(r.first + k) }
	if c.History != nil {
		r.monitor.Record = func(e history.Event) { _ = c.History.Write(e) } // End asks for its error
	}
	return r
}

func (r *run) name(id int) string { return r.rules.Names.Of(protocol.ID(id)) }

func (r *run) run(ctx context.Context, host node.Host, program func() *exec.Cmd) (result sim.Result, err error) {
	began := time.Now()
	r.system = system{
		c: &r.c, host: host, program: program, names: r.name, log: slog.New(slog.NewTextHandler(complaints{r}, complained)),
	}
	if err := r.system.start(); err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, r.system.close()) }()
	meeting, cancel := context.WithTimeoutCause(ctx, r.patience(), fmt.Errorf("not in %v", r.patience()))
	defer cancel()
	if err := r.system.meet(meeting); err != nil {
		return result, err
	}
	running, stop := context.WithCancel(ctx)
	r.begin(running, stop)
	r.watch(running)
	sent := r.system.sent()
	stop()
	r.crew.Wait()
	result = r.result(sent)
	result.Seconds = time.Since(began).Seconds()
	if r.c.History != nil {
		if err := r.c.History.End(r.now()); err != nil {
			return result, fmt.Errorf("live: %w", err)
		}
	}
	if ctx.Err() != nil {
		return result, fmt.Errorf("live: %w", context.Cause(ctx))
	}
	return result, nil
}

// begin makes now time 0, at which users and faults begin.
func (r *run) begin(ctx context.Context, cancel context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began, r.cancel = time.Now(), cancel
	for k, entries := range r.c.Entries {
		if entries > 0 {
			r.active++
			r.start(ctx, k, r.load.First(k))
		}
	}
	if len(r.c.Faults) > 0 {
		r.crew.Go(func() { r.fault(ctx) })
	}
}

// start has user k begin after so long, with the present life of its process. r.mu is held.
func (r *run) start(ctx context.Context, k int, after time.Duration) {
	u := r.user(k)
	r.crew.Go(func() {
		u.live(ctx, after)
		for r.again(ctx, &u) {
			u.live(ctx, 0)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.active--; r.active == 0 {
			close(r.done)
		}
	})
}

// user makes user k one of the present life of its process. r.mu is held.
func (r *run) user(k int) *user {
	r.users[k] = &user{
		r: r, k: k, p: r.system.process(r.first + k), told: make(chan protocol.Do, 4), ended: make(chan struct{}), busy: true,
	}
	return r.users[k]
}

// again has a new client take over the entries of one that crashed, after it has thought. It reports false if there are none, or
// if ctx ends.
func (r *run) again(ctx context.Context, u **user) bool {
	old := *u
	r.mu.Lock()
	gone := old.gone
	r.mu.Unlock()
	if !gone || r.first == 0 {
		return false
	}
	after, more := r.thinks(old, false)
	if !more {
		return false
	}
	<-old.ended // it is being closed
	select {
	case <-ctx.Done():
		return false
	case <-time.After(after):
	}
	if err := r.system.again(r.first+old.k, false); err != nil {
		r.fails(r.first+old.k, err)
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	*u = r.user(old.k)
	return true
}

// patience is how long nothing may happen.
func (r *run) patience() time.Duration { return patience + 3*r.c.Lease + 1000*r.c.Delay.Mean() }

// watch waits until the users are done, and ends a run that is stuck.
func (r *run) watch(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			r.look()
		}
	}
}

// look says how far a run is, and ends one in which nothing happens any more.
func (r *run) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.c.Progress != nil {
		r.c.Progress(sim.Progress{Entries: int(r.monitor.Entries()), Total: r.load.Total(), Now: time.Duration(now)})
	}
	thinks := func(u *user) bool { return u != nil && u.busy && !u.gone }
	if now-r.last >= int64(r.patience()) && !slices.ContainsFunc(r.users, thinks) {
		r.found("stuck", fmt.Sprintf("nothing has happened in %v, and users wait", r.patience()))
	}
}

// found notes a violation, after which a run does not go on. r.mu is held.
func (r *run) found(property, text string) {
	if r.over {
		return
	}
	r.monitor.Found(r.now(), property, text)
	r.over = true
	r.cancel()
}

// result is what the run showed.
func (r *run) result(sent []int) sim.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	result := sim.Result{On: sim.OnNetwork, Measures: r.monitor.Measures()}
	if r.system.program != nil {
		result.On = sim.OnProcesses
	}
	result.Identify(r.rules.Info, &r.c)
	result.GaveUpReasons, result.Totals = r.reasons, r.totals
	result.Count(r.rules.Messages, sent)
	result.Judge(&r.monitor)
	result.VirtualSeconds = time.Duration(r.now()).Seconds()
	return result
}

func (r *run) now() int64 { return int64(time.Since(r.began)) }

// note records what happens to a user, unless it or the run is over. r.mu is held while what is called.
func (r *run) note(u *user, what func(now int64)) (counts bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if counts = !r.over && !u.gone; counts {
		r.last = r.now()
		what(r.last)
	}
	return counts
}

// tries has a user want what the workload says.
func (r *run) tries(u *user) (wants protocol.Groups) {
	r.note(u, func(now int64) {
		wants, u.busy = r.load.Wanted(u.k), false
		r.monitor.Input(u.k, now, protocol.NewTry(wants))
	})
	return wants
}

// exits has a user leave.
func (r *run) exits(u *user) {
	r.note(u, func(now int64) {
		u.busy = false
		r.monitor.Input(u.k, now, protocol.Input{Kind: protocol.Exit})
	})
}

// downgrades has a user come down to a group, and reports whether it still may.
func (r *run) downgrades(u *user, to protocol.Group) (may bool) {
	r.note(u, func(now int64) {
		if may = r.monitor.Section(u.k) == protocol.InCrit; may {
			r.totals.Downgrades++
			r.monitor.Input(u.k, now, protocol.NewDowngrade(to))
		}
	})
	return may
}

// act records what a user is told. It reports whether that counts.
func (r *run) act(u *user, a protocol.Act) bool {
	return r.note(u, func(now int64) {
		was := r.monitor.Section(u.k)
		r.monitor.Act(u.k, now, a)
		if a.Do == protocol.Crit && was == protocol.InTry {
			r.load.Entered(u.k)
		}
		u.busy = a.Do != protocol.Rem || r.load.Left(u.k) > 0
		if was == protocol.InTry && a.Do == protocol.Rem && a.Reason() != 0 {
			if r.reasons == nil {
				r.reasons = map[string]uint64{}
			}
			r.reasons[a.Reason().Error()]++
		}
	})
}

// holds draws how long a user stays inside, and whether it comes down to a group meanwhile.
func (r *run) holds(u *user, in protocol.Group) (d time.Duration, comesDown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d = r.load.Holds(u.k)
	return d, r.rules.Downgrades(r.monitor.Section(u.k), in) && r.load.ComesDown(u.k)
}

// thinks draws how long a user thinks, if it has entries left to make.
func (r *run) thinks(u *user, gaveUp bool) (d time.Duration, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.load.Left(u.k) == 0 {
		return 0, false
	}
	if d = r.load.Thinks(u.k); d == 0 && gaveUp {
		d = r.c.Delay.Mean()
	}
	return d, true
}

// breaks notes that a user cannot go on, unless its process crashes.
func (r *run) breaks(u *user, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !u.gone {
		r.found("node", r.name(r.first+u.k)+": "+strings.TrimPrefix(why.Error(), "node: "))
	}
}

// fails notes that a process cannot begin again.
func (r *run) fails(id int, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found("node", r.name(id)+" does not begin again: "+why.Error())
}

// complaints takes what nodes log as errors.
type complaints struct{ r *run }

// complained leaves out the time, and what is no error.
var complained = &slog.HandlerOptions{Level: slog.LevelError, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == "stack" {
		return slog.Attr{}
	}
	return a
}}

func (c complaints) Write(text []byte) (int, error) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if c.r.cancel != nil {
		c.r.found("node", strings.TrimSpace(string(text)))
	}
	return len(text), nil
}
