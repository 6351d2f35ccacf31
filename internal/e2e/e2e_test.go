package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/fence"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/verify/history"
)

// A counting is a number of clients that increment one counter.
type counting struct {
	t       *testing.T
	file    string
	clients []*process
	args    []clientArgs
	rounds  []int64         // of each client, at mark
	verdict *history.Report // at the end
}

func startCounting(t *testing.T, c *cluster, clients int, a clientArgs) *counting {
	t.Helper()
	a.Mode, a.Servers, a.Name = "count", c.servers, "counter"
	a.File = filepath.Join(t.TempDir(), "counter")
	if err := os.WriteFile(a.File, []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := &counting{t: t, file: a.File}
	for i := range clients {
		a.Label = fmt.Sprintf("client %d", i)
		x.clients = append(x.clients, startClient(t, a))
		x.args = append(x.args, a)
	}
	x.rounds = make([]int64, clients)
	for _, p := range x.clients {
		if line := p.hear(); line != "ready" {
			t.Fatalf("client: %q\n%s", line, &p.stderr)
		}
	}
	return x
}

// mark notes how often each client has waited and held.
func (x *counting) mark() {
	x.t.Helper()
	for i := range x.clients {
		x.rounds[i] = x.round(i)
	}
}

func (x *counting) round(i int) int64 {
	f, err := os.Stat(roundsFile(x.args[i]))
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return 0 // it has not begun
		}
		x.t.Fatal(err)
	}
	return f.Size()
}

// settle waits until everybody has ended the wait and hold in which mark found
// it, so that none of them meets two kills.
func (x *counting) settle() {
	x.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		late := -1
		for i := range x.clients {
			if x.round(i) == x.rounds[i] {
				late = i
			}
		}
		if late < 0 {
			return
		}
		if time.Now().After(end) {
			x.t.Fatalf("client %d waits or holds for %v", late, patience)
		}
	}
}

// end ends the clients and returns what they did together, and the counter.
func (x *counting) end() (all counted, counter int) {
	x.t.Helper()
	for _, p := range x.clients {
		p.stdin.Close()
	}
	for i, p := range x.clients {
		var r counted
		if err := json.Unmarshal([]byte(p.end()), &r); err != nil {
			x.t.Fatal(err)
		}
		all.Increments += r.Increments
		all.Lost += r.Lost
		all.Longest = max(all.Longest, r.Longest)
		for _, e := range r.Errors {
			all.Errors = append(all.Errors, fmt.Sprintf("client %d: %s", i, e))
		}
		if r.Increments == 0 {
			x.t.Errorf("client %d never entered", i)
		}
	}
	counter, err := readCounter(x.file)
	if err != nil {
		x.t.Fatal(err)
	}
	var files []string
	for _, a := range x.args {
		files = append(files, historyFile(a))
	}
	if x.verdict, err = judgeFiles(files, history.Bounds{}); err != nil {
		x.t.Fatal(err)
	}
	return all, counter
}

// TestKilledServers: as long as not more than one of four servers loses its
// memory while somebody waits or holds, nothing is lost and nobody notices.
func TestKilledServers(t *testing.T) {
	t.Parallel()
	kills, interval := 5, time.Second
	if lane.Long.Runs() {
		kills, interval = 20, 2*time.Second
	} else {
		t.Logf("SHORTENED to %d kills, one every %v: TEST_LANE=long makes it 20, one every 2s", kills, interval)
	}
	c := startCluster(t, 4)
	x := startCounting(t, c, 6, clientArgs{Hold: 20 * time.Millisecond})
	for range kills {
		time.Sleep(interval)
		x.settle() // everybody has been served since the last kill
		i := rand.IntN(4)
		c.kill(i)
		x.mark()
		c.start(i)
	}
	time.Sleep(interval)
	all, counter := x.end()
	t.Logf("%d increments, the longest wait and hold took %v", all.Increments, all.Longest)
	if counter != all.Increments {
		t.Errorf("the counter is %d after %d increments", counter, all.Increments)
	}
	report(t, "the history", problems(x.verdict))
	if all.Lost != 0 || len(all.Errors) != 0 {
		t.Errorf("%d grants lost, errors:\n%s", all.Lost, strings.Join(all.Errors, "\n"))
	}
}

// TestWithoutLock shows that the counter notices: without the lock it is wrong.
func TestWithoutLock(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4)
	x := startCounting(t, c, 6, clientArgs{Hold: 20 * time.Millisecond, NoLock: true})
	for range 5 {
		x.mark()
		x.settle() // everybody has increased it once more, at about the same time
	}
	all, counter := x.end()
	t.Logf("%d of %d increments are in the counter", counter, all.Increments)
	if overlaps(x.verdict) == 0 {
		t.Error("the judge has not noticed that there is no lock")
	}
	if counter >= all.Increments {
		t.Error("six clients without a lock lost no increment: the harness cannot fail")
	}
}

// TestTooManyKilledServers: when three of four servers lose their memory at once
// the holder is told, because too few are left that know it, and others enter. It does
// not rebuild its supports: one that hears of the three losses one after the other may
// have the first support back before it hears of the next, and then never has too few.
func TestTooManyKilledServers(t *testing.T) {
	t.Parallel()
	x := startRolling(t, work{NoRefresh: true})
	for i := range 3 {
		x.c.kill(i)
	}
	for i := range 3 {
		x.c.start(i)
	}
	if x.j.await(func(r record) bool { return r.Client == "holder" && r.What == "lost" }) == nil {
		t.Error("the holder was not told that its lock was lost")
	}
	wrong := x.end()
	if len(wrong) == 0 || wrong[0] != "the holder lost its lock" {
		t.Errorf("%q", wrong)
	}
}

// TestTryLockOfTwo: two processes that try one free lock at once never both get
// it; both may fail; and one that tries later, alone, gets it.
func TestTryLockOfTwo(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4)
	var clients []*process
	for range 2 {
		p := startClient(t, clientArgs{Mode: "ask", Servers: c.servers, Name: "free"})
		if line := p.hear(); line != "ready" {
			t.Fatal(line)
		}
		clients = append(clients, p)
	}
	outcomes := map[int]int{} // by how many got it
	for range 100 {
		for _, p := range clients {
			p.say("try")
		}
		var holders []*process
		for _, p := range clients {
			switch line := p.hear(); {
			case strings.HasPrefix(line, "held "):
				holders = append(holders, p)
			case line != "not acquired":
				t.Error(line)
			}
		}
		// Only now: one that tries on until the other has unlocked may get it too.
		for _, p := range holders {
			p.say("unlock")
			if line := p.hear(); line != "unlocked" {
				t.Error(line)
			}
		}
		outcomes[len(holders)]++
		later := clients[rand.IntN(2)]
		deadline := time.Now().Add(patience)
		for {
			later.say("try")
			line := later.hear()
			if strings.HasPrefix(line, "held ") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("a free lock cannot be had: %s", line)
			}
		}
		later.say("unlock")
		if line := later.hear(); line != "unlocked" {
			t.Error(line)
		}
	}
	t.Logf("of 100 rounds: nobody got it in %d, one in %d", outcomes[0], outcomes[1])
	if outcomes[2] != 0 {
		t.Errorf("both got it in %d rounds", outcomes[2])
	}
	if outcomes[1] == 0 {
		t.Error("nobody ever got it")
	}
	for _, p := range clients {
		if line := p.end(); line != "bye" {
			t.Error(line)
		}
	}
}

// TestStatus: holders and waiters of a real cluster, whatever server is down.
func TestStatus(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4)
	first := startClient(t, clientArgs{Mode: "ask", Servers: c.servers, Name: "deploy", Label: "first"})
	second := startClient(t, clientArgs{Mode: "ask", Servers: c.servers, Name: "deploy", Label: "second"})
	for _, p := range []*process{first, second} {
		if line := p.hear(); line != "ready" {
			t.Fatal(line)
		}
	}
	first.say("lock")
	if line := first.hear(); !strings.HasPrefix(line, "held ") {
		t.Fatal(line)
	}
	time.Sleep(20 * time.Millisecond) // ages are in ms
	second.say("lock")
	s := c.await("all know the waiter", func(s status) bool {
		return complete(2)(s) && len(s.Locks) == 1 && len(s.Locks[0].Waiters) == 1
	})
	l := s.Locks[0]
	if l.Name != "deploy" || l.Kind != "mutex" || len(l.Holders) != 1 || l.Holders[0].Label != "first" || l.Holders[0].SupportsLive < 3 {
		t.Errorf("lock %+v", l)
	}
	if w := l.Waiters[0]; w.Label != "second" {
		t.Errorf("waiter %+v", w)
	}
	if len(l.Holders) > 0 && (l.Holders[0].AgeMS <= l.Waiters[0].AgeMS || l.Holders[0].AgeMS > patience.Milliseconds()) {
		t.Errorf("ages: holder %d ms, waiter %d ms", l.Holders[0].AgeMS, l.Waiters[0].AgeMS)
	}
	if s.Quorum != 3 {
		t.Errorf("status %+v", s)
	}

	c.kill(3)
	s = c.await("one is down", func(s status) bool { return s.Reachable == 3 })
	if s.Servers[3].Reachable || s.Servers[3].Error == "" {
		t.Errorf("with a server down: %+v", s)
	}
	text, _, err := c.run("status", "--servers", c.servers)
	if err != nil || !strings.Contains(text, "unreachable") || !strings.Contains(text, "first") {
		t.Errorf("with a server down: %v\n%s", err, text)
	}
	first.say("unlock")
	if line := first.hear(); line != "unlocked" {
		t.Error(line)
	}
	if line := second.hear(); !strings.HasPrefix(line, "held ") {
		t.Error(line)
	}
	c.kill(2)
	eventually(t, "two are down", func() string {
		if s, code, _ := c.status("--timeout", "500ms"); code != 69 || s.Reachable != 2 {
			return fmt.Sprintf("exit status %d, %+v", code, s)
		}
		return ""
	})

	second.say("unlock") // or the server that ends drains for as long as it may
	if line := second.hear(); line != "unlocked" {
		t.Error(line)
	}
	server := c.procs[0]
	c.procs[0] = nil
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("a server that is asked to end: %v", err)
	}
}

// TestStoppedHolder: a client that is stopped for longer than its lease loses the
// lock, hears of it, and its token is refused.
func TestStoppedHolder(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 4)
	const lease = time.Second
	first := startClient(t, clientArgs{Mode: "ask", Servers: c.servers, Name: "a", Lease: lease})
	second := startClient(t, clientArgs{Mode: "ask", Servers: c.servers, Name: "a"})
	for _, p := range []*process{first, second} {
		if line := p.hear(); line != "ready" {
			t.Fatal(line)
		}
	}
	token := func(line string) uint64 {
		t.Helper()
		text, ok := strings.CutPrefix(line, "held ")
		k, err := strconv.ParseUint(text, 10, 64)
		if !ok || err != nil {
			t.Fatal(line)
		}
		return k
	}
	first.say("lock")
	stale := token(first.hear())
	first.say("lease")
	nanos, err := strconv.ParseInt(first.hear(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Unix(0, nanos) // or later: it is renewed until the next line
	if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	second.say("lock")
	current := token(second.hear())
	if early := time.Until(end); early > 0 {
		t.Errorf("the lock was given away %v before the lease of %v ended", early, lease)
	}
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	first.say("unlock")
	if line := first.hear(); !strings.Contains(line, " lost: leases at ") {
		t.Errorf("the stopped holder was told %q", line)
	}
	var resource fence.Checker
	if err := resource.Check("a", current); err != nil {
		t.Error(err)
	}
	if err := resource.Check("a", stale); !errors.Is(err, fence.ErrStale) {
		t.Errorf("token %d after %d: %v", stale, current, err)
	}
	second.say("unlock")
	if line := second.hear(); line != "unlocked" {
		t.Error(line)
	}
	first.say("lock") // it goes on
	token(first.hear())
}
