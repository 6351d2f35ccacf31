package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/lane"
)

// A rolling is a lock that is held while servers restart, one after the other.
type rolling struct {
	*testing.T
	c        *cluster
	j        *journal
	patience time.Duration // for all supports to be back
	notBack  []string      // restarts after which they were not
}

// startRolling starts servers and a holder of the lock "held".
func startRolling(t *testing.T, holder work) *rolling {
	t.Helper()
	x := &rolling{T: t, c: startCluster(t, 4), j: newJournal(t), patience: patience}
	holder.Long, holder.Deadline = true, patience
	x.j.start(clientArgs{Servers: x.c.servers, Name: "held", Label: "holder", work: holder})
	if x.j.await(entered("holder", "held", 0)) == nil {
		t.Fatal("the holder did not get the lock")
	}
	x.awaitBack("the start")
	return x
}

// contend starts clients that want the lock that is held, and others that take turns
// with other locks.
func (x *rolling) contend() {
	x.Helper()
	for i := range 3 {
		x.j.start(clientArgs{
			Servers: x.c.servers, Name: "held", Label: fmt.Sprintf("waiter %d", i),
			work: work{Deadline: time.Duration(100+300*i) * time.Millisecond, Pause: 200 * time.Millisecond, Try: i == 0},
		})
	}
	for i := range 4 {
		x.j.start(clientArgs{
			Servers: x.c.servers, Name: fmt.Sprintf("other %d", i/2), Label: fmt.Sprintf("neighbour %d", i),
			Hold: 5 * time.Millisecond,
			work: work{Deadline: patience, Pause: 10 * time.Millisecond},
		})
	}
}

// round kills each server and starts it again, the next one only after status shows
// that the holder has its supports back, and that every client is there again.
func (x *rolling) round(k int) {
	x.Helper()
	for i := range 4 {
		x.c.kill(i)
		x.c.start(i)
		x.awaitBack(fmt.Sprintf("restart %d of s%d", k+1, i+1))
		time.Sleep(rand.N(100 * time.Millisecond)) // another moment of what the others do
	}
}

func (x *rolling) awaitBack(after string) {
	x.Helper()
	for end := time.Now().Add(x.patience); ; time.Sleep(50 * time.Millisecond) {
		s, _, err := x.c.status()
		if err == nil && x.back(s) {
			return
		}
		if x.j.find(func(r record) bool { return r.Client == "holder" && r.What == "lost" }) != nil {
			return // nobody is there to get supports back
		}
		if time.Now().After(end) {
			x.notBack = append(x.notBack, fmt.Sprintf("after %s: %v, %+v", after, err, s))
			return
		}
	}
}

func (x *rolling) back(s status) bool {
	return complete(len(x.j.workers))(s) && supported("held")(s)
}

// end has the holder leave and somebody else enter, and says what was wrong.
func (x *rolling) end() (wrong []string) {
	x.Helper()
	told := clock.Now()
	x.j.workers["holder"].say("leave")
	x.j.start(clientArgs{Servers: x.c.servers, Name: "held", Label: "next", work: work{Deadline: patience}})
	if x.j.await(entered("next", "held", told)) == nil {
		wrong = append(wrong, "nobody enters after the holder")
	}
	h := x.j.end()
	x.Log(h.summary())
	if first := slices.IndexFunc(h, entered("", "held", 0)); first < 0 || h[first].Client != "holder" {
		x.Error("the holder did not enter first")
	}
	if slices.ContainsFunc(h, func(r record) bool { return r.Client == "holder" && r.What == "lost" }) {
		wrong = append(wrong, "the holder lost its lock")
	}
	wrong = append(append(wrong, x.notBack...), problems(x.j.judge())...)
	return append(wrong, h.strange(notAcquired)...)
}

// TestRollingRestarts: one hold outlasts any number of restarts, as long as each waits
// until the holder has its supports back.
func TestRollingRestarts(t *testing.T) {
	t.Parallel()
	rounds := 2
	if full(t, "two rounds of restarts", "ten") {
		rounds = 10
	}
	for _, contended := range []bool{false, true} {
		t.Run(fmt.Sprintf("contended=%v", contended), func(t *testing.T) {
			x := startRolling(t, work{})
			if contended {
				x.contend()
			}
			begin := time.Now()
			for k := range rounds {
				x.round(k)
			}
			t.Logf("%d restarts in %v", 4*rounds, time.Since(begin).Round(time.Millisecond))
			report(t, "while servers restarted one by one", x.end())
		})
	}
}

// TestRollingWithoutRefresh shows that the test above notices: a holder that does not
// rebuild its supports has too few after three restarts.
func TestRollingWithoutRefresh(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "five seconds")
	x := startRolling(t, work{NoRefresh: true})
	x.patience = 2 * time.Second
	x.round(0)
	if len(x.notBack) == 0 {
		t.Error("supports came back to a holder that does not ask for them")
	}
	if lost := x.j.await(func(r record) bool { return r.Client == "holder" && r.What == "lost" }); lost == nil {
		t.Error("the holder lost nothing")
	}
	if problems := x.end(); len(problems) == 0 {
		t.Error("the harness has not noticed")
	}
}
