package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
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
	rooms    bool                   // clients share the counter, those of a room
	broken   func(i int, w *work)   // makes client i a broken variant; nil: none
	open     bool                   // broken variant: the resource takes every token
	goesOn   func(r *resource) bool // beyond the duration; nil: no
}

// rooms are the groups that clients want in turn. A fourth of them want to be alone.
var rooms = []string{"red", "green", poundlock.Shared, ""}

func room(i int) string { return rooms[i%len(rooms)] }

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
		a := clientArgs{
			Servers: c.servers, Lease: lease, Name: "counter", Label: fmt.Sprintf("client %d", i),
			Hold: s.hold(),
			work: work{ClockBound: clockBound, Deadline: time.Second, Resource: r.socket},
		}
		if s.rooms {
			a.Group = room(i)
		}
		if s.broken != nil {
			s.broken(i, &a.work)
		}
		j.start(a)
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
	t.Logf("%d kills in %v: %s; %v; overlaps seen: %d; inside together: %+v",
		kills, s.duration, h.summary(), r, overlaps(verdict), verdict.Measures.Concurrency)
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
	lane.CI.Need(t, "ten seconds of storms")
	duration, clients := 3*time.Second, 6
	if full(t, "6 clients for 3s, then 1s and 1s", "16 for 60s, then 20s and 20s") {
		duration, clients = time.Minute, 16
	}
	for name, s := range map[string]storm{
		"one at once":           {atOnce: 1, duration: duration},
		"three at once":         {atOnce: 3, duration: duration / 3, pause: 500 * time.Millisecond},
		"and holders that stop": {atOnce: 1, duration: duration / 3, pause: time.Second, stops: true},
		"of groups":             {atOnce: 1, duration: duration / 3, pause: time.Second, stops: true, rooms: true, clients: 12},
	} {
		t.Run(name, func(t *testing.T) {
			s.clients = cmp.Or(s.clients, clients)
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
			if s.rooms && verdict.Measures.Concurrency.Max < 2 {
				t.Error("no two of one group were inside together")
			}
		})
	}
}

// TestStormNoticed: without exclusion it is the tokens that protect the counter, and
// without both the counter is wrong. So the harness sees overlaps and lost increments.
func TestStormNoticed(t *testing.T) {
	t.Parallel()
	testNoticed(t, history.Exclusion, storm{clients: 4, broken: func(_ int, w *work) { w.Apart = true }})
}

// TestStormOfGroupsNoticed: among clients that share there is one that is inside without the lock, or
// that shows a stale token.
func TestStormOfGroupsNoticed(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "ten seconds of storms with a broken client")
	t.Run("without the lock", func(t *testing.T) {
		testNoticed(t, history.Exclusion, storm{clients: 12, rooms: true, broken: func(i int, w *work) { w.Apart = i == 0 }})
	})
	t.Run("stale token", func(t *testing.T) {
		testNoticed(t, history.Inversion, storm{clients: 12, rooms: true, broken: func(i int, w *work) { w.Stale = i == 0 }})
	})
}

// testNoticed: the judge finds what client 0 does to a property, and the resource refuses uses. One that is
// open loses increments where exclusion is violated.
func testNoticed(t *testing.T, property string, s storm) {
	t.Helper()
	s.atOnce, s.pause, s.duration = 1, 200*time.Millisecond, time.Second
	s.goesOn = func(r *resource) bool { return !r.hasRefused() }
	r, _, verdict := s.run(t)
	found := slices.ContainsFunc(verdict.Violations, func(v history.Finding) bool {
		return v.Property == property && strings.Contains(v.Text, "client 0 of")
	})
	if !found || !r.hasRefused() {
		t.Errorf("a broken client: %q, %v", problems(verdict), r)
	}
	report(t, "the resource", r.problems())
	if property != history.Exclusion {
		return
	}
	s.open = true
	s.goesOn = func(r *resource) bool { return len(r.problems()) == 0 }
	if r, _, _ = s.run(t); len(r.problems()) == 0 {
		t.Errorf("a broken client, and a resource that takes every token: %v", r)
	}
}
