package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/proctest"
)

// A kvCluster is three processes with values.
type kvCluster struct {
	t     *testing.T
	dir   string
	procs [3]*exec.Cmd
	log   proctest.Log
}

func startKV(t *testing.T) *kvCluster {
	c := &kvCluster{t: t, dir: proctest.SocketDir(t)}
	t.Cleanup(func() {
		for i := range c.procs {
			c.kill(i)
		}
		if t.Failed() {
			t.Log(c.log.String())
		}
	})
	for i := range c.procs {
		c.start(i, "--bootstrap")
	}
	for i := range c.procs {
		c.serves(i)
	}
	return c
}

func (c *kvCluster) at(i int) string { return "unix:" + filepath.Join(c.dir, fmt.Sprint("api", i)) }

func (c *kvCluster) start(i int, more ...string) {
	c.t.Helper()
	var peers []string
	for k := range c.procs {
		peers = append(peers, fmt.Sprintf("p%d=unix:%s", k, filepath.Join(c.dir, fmt.Sprint("p", k))))
	}
	p := clitest.Command(append([]string{
		"kv", "serve", "--name", fmt.Sprint("p", i), "--peers", strings.Join(peers, ","), "--api", c.at(i), "--lease", "300ms",
	}, more...)...)
	p.Stderr = &c.log
	if err := p.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.procs[i] = p
}

func (c *kvCluster) kill(i int) {
	if p := c.procs[i]; p != nil && p.ProcessState == nil {
		p.Process.Kill()
		p.Wait()
	}
}

// run is a command at a member: its output and its status.
func (c *kvCluster) run(i int, args ...string) (out string, status int) {
	cmd := clitest.Command(append(append([]string{"kv"}, args...), "--at", c.at(i))...)
	var b bytes.Buffer
	cmd.Stdout = &b
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Error(err)
	}
	return strings.TrimSuffix(b.String(), "\n"), cmd.ProcessState.ExitCode()
}

// serves waits until a member answers.
func (c *kvCluster) serves(i int) {
	c.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, status := c.run(i, "get", "none", "-w", "10"); status == cli.ExitNot {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("p%d does not answer", i)
		}
	}
}

// A swap is one poundlock kv cas, and how it ended.
type swap struct {
	old, next string
	status    int
}

// Three processes change one key by poundlock kv cas, and the member of one is killed again and again, and comes back, while another one is stopped. Each status is
// true: of those that say that they have swapped there is one chain from the first value to the last, and of those that
// say that they have not none is in it.
func TestKVStatuses(t *testing.T) {
	c := startKV(t)
	const key, first = "k", "first"
	if _, status := c.run(0, "put", key, first); status != 0 {
		t.Fatalf("put: %d", status)
	}
	var mu sync.Mutex
	var swaps []swap
	var users sync.WaitGroup
	stop := make(chan struct{})
	for i := range c.procs {
		users.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				old, status := c.run(i, "get", key, "-w", "5")
				if status != 0 {
					continue
				}
				s := swap{old: old, next: fmt.Sprintf("%d.%d", i, k)}
				_, s.status = c.run(i, "cas", key, s.old, s.next, "-w", "5")
				mu.Lock()
				swaps = append(swaps, s)
				mu.Unlock()
			}
		})
	}
	done := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range swaps {
			if s.status == 0 {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(patience); done() < 10 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	for range 3 {
		c.kill(1)
		c.start(1)
		c.serves(1)
		c.procs[2].Process.Signal(syscall.SIGSTOP) // the others go on without it
		time.Sleep(500 * time.Millisecond)
		c.procs[2].Process.Signal(syscall.SIGCONT)
		c.serves(2)
	}
	close(stop)
	users.Wait()
	last, status := c.run(2, "get", key)
	if status != 0 {
		t.Fatalf("get: %d", status)
	}
	for _, fault := range judgeSwaps(first, last, swaps) {
		t.Error(fault)
	}
	statuses := map[int]int{}
	for _, s := range swaps {
		statuses[s.status]++
	}
	t.Logf("%d swaps, by status: %v", len(swaps), statuses)
}

// judgeSwaps says which statuses are wrong. New values are all different, so the key had each of them once at most, and there is one
// chain of swaps from the first value to the last. Those of which nobody knows are in it or not.
func judgeSwaps(first, last string, swaps []swap) (wrong []string) {
	before := map[string]swap{} // by next
	for _, s := range swaps {
		before[s.next] = s
	}
	in := map[string]bool{}
	for at := last; at != first; {
		s, found := before[at]
		if !found || in[at] {
			return append(wrong, fmt.Sprintf("the key is %q, which nobody has made of %q", last, first))
		}
		in[at] = true
		at = s.old
	}
	for _, s := range swaps {
		switch s.status {
		case 0:
			if !in[s.next] {
				wrong = append(wrong, fmt.Sprintf("%v is not executed", s))
			}
		case cli.ExitUnknown:
		case cli.ExitNot, cli.ExitLost, cli.ExitNoQuorum, cli.ExitNotAcquired:
			if in[s.next] {
				wrong = append(wrong, fmt.Sprintf("%v is executed", s))
			}
		default:
			wrong = append(wrong, fmt.Sprintf("%v: what is this status", s))
		}
	}
	return wrong
}

// What the judge of statuses has to see.
func TestJudgeSwaps(t *testing.T) {
	for _, test := range []struct {
		last  string
		swaps []swap
		want  string
	}{
		{"c", []swap{{"a", "b", 0}, {"b", "c", cli.ExitUnknown}, {"b", "d", cli.ExitNot}, {"c", "e", cli.ExitUnknown}}, ""},
		{"b", []swap{{"a", "b", cli.ExitLost}}, "is executed"},
		{"a", []swap{{"a", "b", 0}}, "is not executed"},
		{"c", []swap{{"a", "b", 0}, {"a", "c", 0}}, "{a b 0} is not executed"},
		{"x", []swap{{"a", "b", 0}}, "nobody has made"},
		{"a", []swap{{"a", "b", cli.ExitInternal}}, "what is this status"},
	} {
		if got := strings.Join(judgeSwaps("a", test.last, test.swaps), "; "); !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", test.swaps, got, test.want)
		}
	}
}

// Who says to begin although the others have met it is refused.
func TestKVBootstrapTwice(t *testing.T) {
	c := startKV(t)
	c.kill(0)
	c.start(0, "--bootstrap")
	err := c.procs[0].Wait()
	if code := c.procs[0].ProcessState.ExitCode(); code != cli.ExitError {
		t.Errorf("status %d: %v", code, err)
	}
	if !strings.Contains(c.log.String(), "this is not the first start: start without") {
		t.Error("it does not say why")
	}
}

// A member that goes before it answers leaves an operation of which its command knows nothing.
func TestKVUnknown(t *testing.T) {
	c := &kvCluster{t: t, dir: proctest.SocketDir(t)}
	l, err := net.Listen("unix", filepath.Join(c.dir, "api0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Read(make([]byte, 1))
			conn.Close()
		}
	}()
	if _, status := c.run(0, "put", "k", "v"); status != cli.ExitUnknown {
		t.Errorf("status %d", status)
	}
	os.Remove(filepath.Join(c.dir, "api0"))
	if _, status := c.run(0, "put", "k", "v"); status != cli.ExitNoQuorum {
		t.Errorf("nobody is there: status %d", status)
	}
}
