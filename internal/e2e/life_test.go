package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
)

// await asks for the status until it is as it should be.
func (c *cluster) await(what string, ok func(s status) bool) status {
	c.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s, _, err := c.status()
		if err == nil && ok(s) {
			return s
		}
		if time.Now().After(end) {
			c.t.Fatalf("not after %v: %s: %v, %+v", patience, what, err, s)
		}
	}
}

// complete reports whether all servers have sessions with so many clients.
func complete(clients int) func(s status) bool {
	return func(s status) bool {
		for _, x := range s.Servers {
			if !x.Reachable || x.Draining || x.Sessions != clients {
				return false
			}
		}
		return true
	}
}

// supported reports whether a lock has a holder with the support of all four servers.
func supported(name string) func(s status) bool {
	return func(s status) bool {
		for _, l := range s.Locks {
			if l.Name == name && len(l.Holders) == 1 && l.Holders[0].SupportsLive == 4 {
				return true
			}
		}
		return false
	}
}

// ends waits until a process that was told to end has, with status 0.
func (c *cluster) ends(p *exec.Cmd) {
	c.t.Helper()
	limit := time.AfterFunc(patience, func() { _ = p.Process.Kill() })
	defer limit.Stop()
	if err := p.Wait(); err != nil {
		c.t.Errorf("a server that was to end: %v", err)
	}
}

// drain restarts server i after it has drained.
func (c *cluster) drain(i int) {
	c.t.Helper()
	p := c.procs[i]
	c.procs[i] = nil
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	c.ends(p)
	c.start(i)
}

// handOver starts a successor of server i, which has a place for it.
func (c *cluster) handOver(i int) {
	c.t.Helper()
	old := c.procs[i]
	c.start(i)
	c.ends(old)
}

// Every server is restarted after it has drained, one after the other and without
// waiting for anything but its sessions: nobody loses a lock.
func TestDrainedServers(t *testing.T) {
	t.Parallel()
	const clients = 6
	c := startCluster(t, 4)
	x := startCounting(t, c, clients, clientArgs{Hold: 20 * time.Millisecond})
	for k := range 8 {
		c.await("all have sessions", complete(clients))
		c.drain(k % 4)
	}
	c.await("all have sessions", complete(clients))
	all, counter := x.end()
	t.Logf("%d increments, the longest wait and hold took %v", all.Increments, all.Longest)
	report(t, "the history", problems(x.verdict))
	if counter != all.Increments || all.Lost != 0 || len(all.Errors) != 0 {
		t.Errorf("counter %d, increments %d, %d grants lost, errors:\n%s",
			counter, all.Increments, all.Lost, strings.Join(all.Errors, "\n"))
	}
	for i, log := range c.logs {
		if drained := strings.Count(log.String(), "drained: nobody loses anything"); drained != 2 {
			t.Errorf("s%d drained %d times of 2:\n%s", i+1, drained, log)
		}
	}
}

// A server that drains while a lock is held waits for it, as long as it may, and ends
// at once when it is told twice.
func TestDrainOfHeldLock(t *testing.T) {
	t.Parallel()
	c := startClusterWith(t, 4, func(i int) []string {
		return []string{"--drain-timeout", []string{"1m", "1m", "300ms", "0"}[i]}
	})
	p := startClient(t, clientArgs{Mode: "ask", Servers: c.servers, Name: "a"})
	if line := p.hear(); line != "ready" {
		t.Fatal(line)
	}
	p.say("lock")
	if line := p.hear(); !strings.HasPrefix(line, "held ") {
		t.Fatal(line)
	}
	tell := func(i int) *exec.Cmd {
		t.Helper()
		if err := c.procs[i].Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		return c.procs[i]
	}
	draining := func(i int) func(s status) bool {
		return func(s status) bool { return s.Servers[i].Draining }
	}

	c.await("all support the holder", supported("a"))
	twice := tell(0)
	c.await("s1 drains", draining(0))
	text, _, err := c.run("status", "--servers", c.servers)
	if err != nil || !strings.Contains(text, "draining") {
		t.Errorf("%v\n%s", err, text)
	}
	tell(0)
	c.ends(twice)
	c.procs[0] = nil
	if log := c.logs[0].String(); !strings.Contains(log, "gave up draining") || !strings.Contains(log, "held=1") {
		t.Errorf("the log does not say that the holder lost a support:\n%s", log)
	}
	c.start(0)
	c.await("all support the holder again", supported("a"))

	gives := tell(2)
	c.ends(gives)
	c.procs[2] = nil
	if log := c.logs[2].String(); !strings.Contains(log, "gave up draining") {
		t.Errorf("the log does not say that it gave up:\n%s", log)
	}
	c.start(2)
	c.await("all support the holder again", supported("a"))

	atOnce := tell(3)
	c.ends(atOnce)
	c.procs[3] = nil
	if log := c.logs[3].String(); strings.Contains(log, "drain") {
		t.Errorf("drained with --drain-timeout 0:\n%s", log)
	}
	c.start(3)
	c.await("all support the holder again", supported("a"))

	waits := tell(1)
	c.await("s2 drains", draining(1))
	p.say("unlock")
	if line := p.hear(); line != "unlocked" {
		t.Errorf("the holder through four restarts: %s", line)
	}
	c.ends(waits)
	c.procs[1] = nil
	if log := c.logs[1].String(); !strings.Contains(log, "drained: nobody loses anything") {
		t.Errorf("the log does not say that it drained:\n%s", log)
	}
}

// handsOver gives the servers a place for their successors.
func handsOver(t *testing.T) func(i int) []string {
	dir := proctest.SocketDir(t)
	return func(i int) []string {
		return []string{"--handover", "unix:" + filepath.Join(dir, fmt.Sprint("next", i+1))}
	}
}

// lost says what two states of a cluster tell that somebody has lost.
func lost(before, after status) (complaints []string) {
	for i := range before.Servers {
		b, a := before.Servers[i], after.Servers[i]
		if a.Incarnation != b.Incarnation || a.Sessions != b.Sessions {
			complaints = append(complaints, fmt.Sprintf("%s: incarnation %s with %d sessions, and then %s with %d",
				a.Name, b.Incarnation, b.Sessions, a.Incarnation, a.Sessions))
		}
	}
	supports := func(s status) (all []string) {
		for _, l := range s.Locks {
			for _, h := range l.Holders {
				if l.Name == "held" {
					all = append(all, fmt.Sprintf("%s: %s has %d supports, budget %d", l.Name, h.ID, h.SupportsLive, h.LossBudget))
				}
			}
		}
		return all
	}
	if b, a := fmt.Sprint(supports(before)), fmt.Sprint(supports(after)); a != b {
		complaints = append(complaints, b+", and then "+a)
	}
	return complaints
}

// Ten times in a row a server hands its table over, while a lock is held throughout and
// others are fought for: nobody loses anything.
func TestHandovers(t *testing.T) {
	t.Parallel()
	const counters = 6
	c := startClusterWith(t, 4, handsOver(t))
	x := startCounting(t, c, counters, clientArgs{Hold: 5 * time.Millisecond})
	holder := startClient(t, clientArgs{Mode: "ask", Servers: c.servers, Name: "held"})
	if line := holder.hear(); line != "ready" {
		t.Fatal(line)
	}
	holder.say("lock")
	if line := holder.hear(); !strings.HasPrefix(line, "held ") {
		t.Fatal(line)
	}
	full := func(s status) bool { return supported("held")(s) && complete(counters+1)(s) }
	before := c.await("all support the holder", full)
	for k := range 10 {
		c.handOver(k % 4)
		c.await("all support the holder", full)
	}
	if complaints := lost(before, c.await("all support the holder", full)); len(complaints) > 0 {
		t.Error(strings.Join(complaints, "\n"))
	}
	holder.say("unlock")
	if line := holder.hear(); line != "unlocked" {
		t.Errorf("the holder through ten hand-overs: %s", line)
	}
	all, counter := x.end()
	t.Logf("%d increments, the longest wait and hold took %v", all.Increments, all.Longest)
	for _, log := range c.logs {
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, `msg="handed over"`) {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
	report(t, "the history", problems(x.verdict))
	if counter != all.Increments || all.Lost != 0 || len(all.Errors) != 0 {
		t.Errorf("counter %d, increments %d, %d grants lost, errors:\n%s",
			counter, all.Increments, all.Lost, strings.Join(all.Errors, "\n"))
	}

	// What these checks would say of a server that was killed instead.
	before = c.await("all servers are there", complete(1))
	c.kill(0)
	c.start(0)
	if len(lost(before, c.await("all servers are there", complete(1)))) == 0 {
		t.Error("nobody notices that a server lost its memory")
	}
	if !strings.Contains(c.logs[0].String(), "no predecessor: starts empty") {
		t.Error("the log does not say that it starts empty")
	}
}

// A predecessor that is stopped, so that it does not answer, keeps a successor from
// serving; one that is killed then does not.
func TestStoppedPredecessor(t *testing.T) {
	t.Parallel()
	c := startClusterWith(t, 4, handsOver(t))
	old := c.procs[0]
	t.Cleanup(func() { _ = old.Process.Kill() })
	if err := old.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c.start(0)
	time.Sleep(300 * time.Millisecond)
	if log := c.logs[0].String(); strings.Count(log, "msg=serving") != 1 {
		t.Errorf("two processes of one name serve:\n%s", log)
	}
	if err := old.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = old.Wait()
	c.await("the successor serves", func(s status) bool { return s.Reachable == 4 })
	if log := c.logs[0].String(); !strings.Contains(log, "starts empty") {
		t.Errorf("the log does not say that the table was lost:\n%s", log)
	}
}
