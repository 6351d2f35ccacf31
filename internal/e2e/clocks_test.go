//go:build offsetclock

package e2e

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/proctest"
)

// tags are those that the server is built with.
const tags = "offsetclock"

// A clocks is a cluster under load whose wall clocks are set, with one journal for all
// of it.
type clocks struct {
	t       *testing.T
	c       *cluster
	j       *journal
	r       []*resource // by lock
	servers []offset
	off     [4]time.Duration // of the servers' clocks now
	began   [4]time.Duration // and when their present lives began
	admin   []string
	clients []offset
	labels  []string // of the present life of each client
	lives   int
}

const (
	clocksLease   = 3 * time.Second
	clocksLocks   = 2
	clocksClients = 6
)

func startClocks(t *testing.T) *clocks {
	t.Helper()
	x := &clocks{t: t, j: newJournal(t), labels: make([]string, clocksClients)}
	for i := range 4 {
		x.servers = append(x.servers, newOffset(t, fmt.Sprint("server ", i)))
		x.admin = append(x.admin, proctest.FreeAddr(t))
	}
	x.c = &cluster{
		t:     t,
		flags: func(i int) []string { return []string{"--lease", clocksLease.String(), "--admin", x.admin[i]} },
		env:   func(i int) []string { return []string{offsetVariable + "=" + x.servers[i].path} },
	}
	x.c.startSome(4)
	for range clocksLocks {
		x.r = append(x.r, newResource(t, false))
	}
	for i := range clocksClients {
		x.clients = append(x.clients, newOffset(t, fmt.Sprint("client ", i)))
		x.startClient(i)
	}
	return x
}

// lock is the name of the lock that client i enters.
func (x *clocks) lock(i int) string { return fmt.Sprint("lock ", i%clocksLocks) }

func (x *clocks) startClient(i int) {
	x.t.Helper()
	x.lives++
	x.labels[i] = fmt.Sprintf("client %d life %d", i, x.lives)
	x.j.start(clientArgs{
		Servers: x.c.servers, Lease: clocksLease, Name: x.lock(i), Label: x.labels[i],
		Hold: 20 * time.Millisecond, ClockOffset: x.clients[i].path,
		work: work{Deadline: 4 * clocksLease, Pause: 50 * time.Millisecond, Resource: x.r[i%clocksLocks].socket},
	})
}

// restart kills server i and starts it again, empty, by the clock that it has.
func (x *clocks) restart(i int) {
	x.c.kill(i)
	x.c.start(i)
	x.began[i] = x.off[i]
}

// set sets the clocks of servers.
func (x *clocks) set(by time.Duration, servers ...int) {
	for _, i := range servers {
		x.off[i] = by
		x.servers[i].set(by)
	}
}

// settled waits until every client has entered since.
func (x *clocks) settled() {
	x.t.Helper()
	since := clock.Now()
	for i, label := range x.labels {
		if x.j.await(entered(label, x.lock(i), since)) == nil {
			x.t.Fatalf("%s does not enter", label)
		}
	}
}

// gap is the longest time from begin to end in which nobody enters some lock; of the clients
// those count that are not among odd.
func (x *clocks) gap(begin, end int64, odd ...int) (longest time.Duration) {
	x.j.mu.Lock()
	defer x.j.mu.Unlock()
	for lock := range clocksLocks {
		last := begin
		for _, r := range x.j.records {
			if r.What != "entered" || r.Name != x.lock(lock) || r.At < begin || r.At > end ||
				slices.ContainsFunc(odd, func(i int) bool { return strings.HasPrefix(r.Client, fmt.Sprintf("client %d ", i)) }) {
				continue
			}
			longest = max(longest, time.Duration(r.At-last))
			last = r.At
		}
		longest = max(longest, time.Duration(end-last))
	}
	return longest
}

// step is the metric of server i, in seconds.
func (x *clocks) step(i int) float64 {
	x.t.Helper()
	answer, err := http.Get("http://" + x.admin[i] + "/metrics")
	if err != nil {
		x.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^poundlock_clock_step_seconds (\S+)$`).FindSubmatch(text)
	if found == nil {
		x.t.Fatalf("no poundlock_clock_step_seconds of s%d", i+1)
	}
	s, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		x.t.Fatal(err)
	}
	return s
}

// named checks that those servers, and no others, are said to be off: by status, by their logs
// and by their metrics.
func (x *clocks) named(by time.Duration, wrong ...int) {
	x.t.Helper()
	s := x.c.await("all answer", func(s status) bool { return s.Reachable == 4 })
	for i := range 4 {
		odd := slices.Contains(wrong, i)
		got := s.Servers[i]
		ahead := time.Duration(got.ClockAheadMS) * time.Millisecond
		if got.ClockWrong != odd || odd && (ahead-by).Abs() > time.Second {
			x.t.Errorf("%v at servers %v: status says of s%d that it is ahead by %v: %t", by, wrong, i+1, ahead, got.ClockWrong)
		}
		set := x.off[i] - x.began[i]
		if seconds := x.step(i); math.Abs(seconds-set.Seconds()) > 1 {
			x.t.Errorf("%v at servers %v: s%d says that its clock was set by %v s, want %v", by, wrong, i+1, seconds, set)
		}
		if odd && !strings.Contains(x.c.logs[i].String(), "the clock of this machine was set while this process runs") {
			x.t.Errorf("%v: the log of s%d does not say it", by, i+1)
		}
	}
	if s.RestartSafe && len(wrong) > 0 {
		x.t.Errorf("%v at servers %v: status says that a server may be restarted", by, wrong)
	}
}

// TestClocks sets wall clocks by seconds, minutes and hours, of a server, of two, and of clients,
// while the one that is wrong is killed and clients are. One is no pause to anybody; two of four servers
// let nobody in as long as they are wrong, and are as good as before soon after.
func TestClocks(t *testing.T) {
	durations := []time.Duration{time.Second}
	if full(t, "1 second each", "1 to 60 seconds each") {
		durations = []time.Duration{time.Second, 5 * time.Second, 20 * time.Second, 60 * time.Second}
	}
	x := startClocks(t)
	x.settled()
	stood := canary()
	defer func() { t.Logf("this process stood still for %v at most", stood()) }()
	const patience = 2 * clocksLease
	steps := []time.Duration{2 * time.Second, -2 * time.Second, 10 * time.Minute, -10 * time.Minute, 2 * time.Hour, -2 * time.Hour}
	for k, by := range steps {
		d := durations[k%len(durations)]

		i, odd := k%4, k%clocksClients
		begin := clock.Now()
		x.set(by, i)
		x.clients[odd].set(by) // of the same machine
		time.Sleep(d / 2)
		x.named(by, i)
		x.restart(i) // its next life begins by the wrong clock
		time.Sleep(d / 2)
		x.set(0, i)
		x.clients[odd].set(0)
		x.settled()
		if gap := x.gap(begin, clock.Now(), odd); gap > patience {
			t.Errorf("%v at s%d and client %d for %v: nobody else enters for %v", by, i+1, odd, d, gap)
		}

		one, two := rand.IntN(4), 0
		for two = one; two == one; two = rand.IntN(4) {
		}
		x.set(by, one, two)
		time.Sleep(d)
		x.named(by, one, two)
		victim := rand.IntN(clocksClients)
		x.j.killed(x.labels[victim])
		x.startClient(victim)
		x.set(0, one, two)
		begin = clock.Now()
		x.settled()
		if gap := x.gap(begin, clock.Now()); gap > patience {
			t.Errorf("%v at s%d and s%d for %v: nobody enters for %v after that", by, one+1, two+1, d, gap)
		}

		begin = clock.Now()
		x.clients[odd].set(by)
		time.Sleep(d)
		if gap := x.gap(begin, clock.Now(), odd); gap > patience {
			t.Errorf("%v at client %d for %v: nobody else enters for %v", by, odd, d, gap)
		}
		x.clients[odd].set(0)
		x.settled()
		x.named(0)
		x.restart(rand.IntN(4))
		x.settled()
	}
	h := x.j.end()
	verdict := x.j.judge()
	t.Logf("%s; overlaps seen: %d", h.summary(), overlaps(verdict))
	report(t, "the history", problems(verdict))
	for _, r := range x.r {
		report(t, "the resource", r.problems())
		if r.refused > 0 {
			t.Errorf("the resource refused %d tokens", r.refused)
		}
	}
	report(t, "errors", h.strange(lockLost, noQuorum, notAcquired))
}
