package e2e

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/verify/history"
)

// A storm is servers that are killed as fast as they start again, and clients that
// increment one fenced counter.
type storm struct {
	atOnce   int           // servers killed together
	pause    time.Duration // at most, after each restart
	duration time.Duration
	clients  int
	stops    bool                   // who is inside is stopped for longer than its lease, now and then
	apart    bool                   // broken variant: each client has a lock of its own
	open     bool                   // broken variant: the resource takes every token
	goesOn   func(r *resource) bool // beyond the duration; nil: no
}

// run returns what the resource and the clients saw, and what their event files tell.
//
// The clock bound is small, because a server that has just started gives tokens four
// bounds ahead of its clock: with the default most servers die before those are due,
// and hardly anybody gets in.
func (s storm) run(t *testing.T) (r *resource, h records, verdict *history.Report) {
	t.Helper()
	const (
		clockBound = 5 * time.Millisecond
		lease      = 2 * time.Second
	)
	c := startClusterWith(t, 4, func(int) []string { return []string{"--clock-bound", clockBound.String()} })
	j := newJournal(t)
	r = newResource(t, s.open)
	for i := range s.clients {
		j.start(clientArgs{
			Servers: c.servers, Lease: lease, Name: "counter", Label: fmt.Sprintf("client %d", i),
			Hold: s.hold(),
			work: work{ClockBound: clockBound, Deadline: time.Second, Resource: r.socket, Apart: s.apart},
		})
	}
	stopped := make(chan struct{})
	if s.stops {
		go j.stopHolders(s.duration, lease+lease/4, r, stopped)
	} else {
		close(stopped)
	}
	kills, begin := 0, time.Now()
	goesOn := func() bool { return s.goesOn != nil && s.goesOn(r) && time.Since(begin) < patience }
	for time.Since(begin) < s.duration || goesOn() {
		victims := rand.Perm(4)[:s.atOnce]
		for _, i := range victims {
			c.kill(i)
			kills++
		}
		for _, i := range victims {
			c.start(i)
		}
		c.awaitAll()
		if s.pause > 0 {
			time.Sleep(rand.N(s.pause))
		}
	}
	<-stopped
	// All servers are there: everybody gets in again, or it is no service.
	calm := clock.Now()
	for label := range j.workers {
		if j.await(entered(label, "counter", calm)) == nil {
			t.Errorf("%s never enters again", label)
		}
	}
	h = j.end()
	verdict = j.judge()
	t.Logf("%d kills in %v: %s; %v; overlaps seen: %d", kills, s.duration, h.summary(), r, overlaps(verdict))
	for _, v := range verdict.Violations[:min(5, len(verdict.Violations))] {
		t.Logf("%v", v)
	}
	return r, h, verdict
}

// hold is how long clients stay inside, at most.
func (s storm) hold() time.Duration {
	if s.stops {
		return 100 * time.Millisecond // else it may have left when it stops
	}
	return 10 * time.Millisecond
}

// stopHolders stops who has entered last, again and again: a pause of a process that no
// lease excludes, and which it does not notice before it has ended. It goes on until the
// resource has refused one that was still inside then.
func (j *journal) stopHolders(duration, pause time.Duration, r *resource, stopped chan<- struct{}) {
	defer close(stopped)
	begin := time.Now()
	for time.Since(begin) < duration || !r.hasRefused() && time.Since(begin) < patience {
		last := j.await(entered("", "counter", clock.Now()))
		if last == nil {
			return
		}
		holder := j.workers[last.Client].cmd.Process
		if err := holder.Signal(syscall.SIGSTOP); err != nil {
			j.t.Error(err)
		}
		time.Sleep(pause)
		if err := holder.Signal(syscall.SIGCONT); err != nil {
			j.t.Error(err)
		}
	}
}

// TestStorm: beyond every budget a program sees three errors only, and a resource that
// compares tokens loses nothing. Two clients may be inside at once then.
func TestStorm(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "six seconds of a storm")
	duration, clients := 3*time.Second, 6
	if full(t, "6 clients for 3s, then 1s and 1s", "16 for 60s, then 20s and 20s") {
		duration, clients = time.Minute, 16
	}
	for name, s := range map[string]storm{
		"one at once":           {atOnce: 1, duration: duration},
		"three at once":         {atOnce: 3, duration: duration / 3, pause: 500 * time.Millisecond},
		"and holders that stop": {atOnce: 1, duration: duration / 3, pause: time.Second, stops: true},
	} {
		t.Run(name, func(t *testing.T) {
			s.clients = clients
			r, h, verdict := s.run(t)
			report(t, "the resource", r.problems())
			report(t, "the history", problems(verdict, history.Exclusion))
			report(t, "errors", h.strange(lockLost, noQuorum, notAcquired))
			if r.written == 0 {
				t.Error("nobody has written")
			}
			if s.stops && !r.hasRefused() {
				t.Error("no stale token was refused: the tokens had nothing to do")
			}
		})
	}
}

// TestStormNoticed: without exclusion it is the tokens that protect the counter, and
// without both the counter is wrong. So the harness sees overlaps and lost increments.
func TestStormNoticed(t *testing.T) {
	t.Parallel()
	s := storm{atOnce: 1, pause: 200 * time.Millisecond, duration: time.Second, clients: 4, apart: true}
	s.goesOn = func(r *resource) bool { return !r.hasRefused() }
	r, _, verdict := s.run(t)
	if overlaps(verdict) == 0 || !r.hasRefused() {
		t.Errorf("clients with different locks: %d overlaps, %v", overlaps(verdict), r)
	}
	report(t, "the resource", r.problems())
	s.open = true
	s.goesOn = func(r *resource) bool { return len(r.problems()) == 0 }
	if r, _, _ = s.run(t); len(r.problems()) == 0 {
		t.Errorf("with different locks and without tokens: %v", r)
	}
}
