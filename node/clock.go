package node

import (
	"sync"
	"sync/atomic"
	"time"
)

// A wallClock is the wall clock, and notices when it is set. What processes are told is the wall
// clock as it is, right or wrong: only what they do with it stays.
//
// While nobody sets it, the wall clock goes as the clock of leases does. The time since
// boot costs a system call, so now compares with Go's monotonic clock, which stands still while the
// machine is suspended, and asks the other one only where the two differ.
type wallClock struct {
	wall    func(time.Time) int64 // of a reading
	boot    func() time.Duration
	least   time.Duration               // a smaller difference is nothing
	set     func(by, off time.Duration) // called when the wall clock was set by so much, and is off by so much since the start
	began   time.Time                   // the origin of the monotonic clock
	started time.Duration               // the wall clock minus boot, at the start
	lead    atomic.Int64                // the wall clock minus the monotonic one, ns, at the last look

	mu    sync.Mutex
	off   time.Duration // by how much the wall clock was set since the start, in all
	steps uint64        // how often
}

// leastStep is the smallest step of the wall clock that is noticed, where no clock bound says
// which ones matter.
const leastStep = 50 * time.Millisecond

func (c *wallClock) start(boot func() time.Duration, bound time.Duration, set func(by, off time.Duration)) {
	c.boot, c.set, c.least = boot, set, bound
	if bound == 0 {
		c.least = leastStep
	}
	c.began = time.Now()
	at := c.wall(c.began)
	c.started = time.Duration(at) - boot()
	c.lead.Store(at)
}

// now is the wall clock, in ns since 1970.
func (c *wallClock) now() int64 {
	t := time.Now()
	now := c.wall(t)
	lead := now - int64(t.Sub(c.began))
	if time.Duration(lead-c.lead.Load()).Abs() > c.least {
		c.look()
	}
	return now
}

// look compares the wall clock with the one of leases.
func (c *wallClock) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := time.Now()
	now := c.wall(t)
	c.lead.Store(now - int64(t.Sub(c.began)))
	off := time.Duration(now) - c.boot() - c.started
	by := off - c.off
	if by.Abs() <= c.least/2 {
		return // the machine was suspended, or another one has seen it
	}
	if off.Abs() <= c.least/2 {
		by, off = -c.off, 0
	}
	c.off = off
	c.steps++
	c.set(by, off)
}

// state is by how much the wall clock has been set since the start, and how often.
func (c *wallClock) state() (off time.Duration, steps uint64) {
	c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.off, c.steps
}

// Clock is the node's wall clock, by how much it was set since the node started, in all, and how often.
func (n *Node) Clock() (now time.Time, off time.Duration, steps uint64) {
	off, steps = n.clock.state()
	return time.Unix(0, n.clock.now()), off, steps
}

// watchClock notices at a member that has nothing to do that its clock was set.
func (n *Node) watchClock() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			n.clock.now()
		case <-n.ctx.Done():
			return
		}
	}
}

// clockSet says that the wall clock was set. At a member it may keep clients waiting, and at a client that client.
func (n *Node) clockSet(by, off time.Duration) {
	by, off = by.Round(time.Millisecond), off.Round(time.Millisecond)
	if off == 0 {
		n.c.Log.Warn("the clock of this machine was set back to where it was", "by", by)
		return
	}
	n.c.Log.Error("the clock of this machine was set while this process runs: locks may have to wait as long as it is wrong",
		"by", by, "since_start", off, "clock_bound", n.c.ClockBound)
}
