package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/fence"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/internal/supervise"
	"github.com/poundlock/poundlock/server"
)

// A stage is a cluster in this process, a client of it, and a directory in which
// poundlock runs as a process of its own.
type stage struct {
	t      *testing.T
	dir    string
	local  *server.Local
	flags  []string // that name the cluster
	config poundlock.Config
	client *poundlock.Client
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, dir: proctest.SocketDir(t)}
	const bound = time.Millisecond
	local, err := server.StartLocal(server.LocalConfig{Dir: s.dir, ClockBound: bound})
	if err != nil {
		t.Fatal(err)
	}
	s.local = local
	t.Cleanup(func() { local.Close() })
	config := poundlock.Config{ClockBound: bound}
	var names []string
	for _, p := range local.Servers() {
		config.Servers = append(config.Servers, poundlock.Server(p))
		names = append(names, p.Name+"="+p.Addr)
	}
	s.config = config
	s.flags = []string{"--clock-bound", bound.String(), "--servers", strings.Join(names, ",")}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.client, err = poundlock.Dial(ctx, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.client.Close() })
	return s
}

// A lockProcess is poundlock lock, or elect, as a process.
type lockProcess struct {
	*stage
	cmd    *exec.Cmd
	stderr proctest.Log
	ended  chan struct{}
}

// lease is short, so that tests are.
const lease = time.Second

// timely tells a story of something that must be over before a lease ends. A machine that
// stands still for longer than the margin, a twentieth of the lease, makes anything late:
// then the story is told again with twice the lease, in which a pause weighs half, and
// what is wrong weighs as much as before.
func timely(t *testing.T, tell func(s *stage, lease time.Duration) (late string)) {
	t.Helper()
	for lease := lease; ; lease *= 2 {
		s := newStage(t)
		s.flags = append(s.flags, "--lease", lease.String()) // the last one counts
		late := tell(s, lease)
		if late == "" {
			return
		}
		t.Logf("under a lease of %v: %s", lease, late)
		if lease > 6*time.Second {
			t.Fatal("that is too late")
		}
	}
}

// lock runs a shell script under the lock "a".
func (s *stage) lock(script string) *lockProcess {
	s.t.Helper()
	return s.start("lock", script)
}

// start runs a shell script under lock or elect, with the name "a".
func (s *stage) start(verb, script string) *lockProcess {
	s.t.Helper()
	args := append([]string{verb, "a", "--lease", lease.String()}, s.flags...)
	p := &lockProcess{stage: s, ended: make(chan struct{})}
	p.cmd = clitest.Command(append(args, "--", "sh", "-c", script)...)
	p.cmd.Dir = s.dir
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = 10 * time.Second // what is left of its group may hold the pipe
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		close(p.ended)
	}()
	s.t.Cleanup(func() {
		if pid, err := s.read("pid"); err == nil {
			syscall.Kill(-pid, syscall.SIGKILL)
		}
		p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

func (p *lockProcess) want(status int) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("does not end; stderr: %s", p.stderr.String())
	}
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		p.t.Fatalf("exit status %d, want %d; stderr: %s", got, status, p.stderr.String())
	}
}

// says waits until poundlock has said something on standard error.
func (p *lockProcess) says(text string) {
	p.t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(p.stderr.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("never said %q: %s", text, p.stderr.String())
		}
	}
}

// watchdog is the process id of the one that poundlock started.
func (p *lockProcess) watchdog() int {
	p.t.Helper()
	pid := proctest.Child(p.cmd.Process.Pid, supervise.WatchdogCommand)
	if pid == 0 {
		p.t.Fatal("no watchdog")
	}
	return pid
}

func (s *stage) read(name string) (int, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// write tells a script something.
func (s *stage) write(name string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// await waits until the script has written a number to a file.
func (s *stage) await(name string) int {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		n, err := s.read(name)
		if err == nil {
			return n
		}
		if time.Now().After(end) {
			s.t.Fatal(err)
		}
	}
}

// next waits for the lock, as its next holder.
func (s *stage) next() *poundlock.Grant {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g, err := s.client.Mutex("a").Lock(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return g
}

// family is a script with a grandchild, neither of which obeys SIGTERM. The
// grandchild keeps writing down the time, in nanoseconds.
const family = `trap '' TERM
(while :; do date +%s%N >beat.new; mv beat.new beat; sleep 0.01; done) & echo $! >grandchild
echo $POUNDLOCK_TOKEN >token
echo $$ >pid
wait`

// poundlock lock is killed, alone or with all that has its name, as killall does: its
// child and grandchild are gone before the lock is given to anybody else.
func TestLockKilled(t *testing.T) {
	t.Parallel()
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		lockKilled(t, func(pid int) { syscall.Kill(pid, syscall.SIGKILL) })
	})
	t.Run("by name", func(t *testing.T) {
		t.Parallel()
		lockKilled(t, func(pid int) { proctest.KillNamesakes(pid) })
	})
}

func lockKilled(t *testing.T, kill func(pid int)) {
	timely(t, func(s *stage, lease time.Duration) (late string) {
		p := s.lock(family)
		grandchild, child := s.await("grandchild"), s.await("pid")
		dog := p.watchdog()
		kill(p.cmd.Process.Pid)
		end := time.Now().Add(lease)
		g := s.next()
		defer g.Unlock()
		if late = s.leaves(child, grandchild, end); late != "" {
			return late
		}
		if held := int(g.Token()); held <= s.await("token") {
			t.Errorf("token %d after %d", held, s.await("token"))
		}
		for end := time.Now().Add(patience); proctest.Running(dog); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the watchdog is left")
			}
		}
		return ""
	})
}

// Only poundlock lock is stopped: the watchdog ends the child's group before the
// lease ends.
func TestLockStopped(t *testing.T) {
	t.Parallel()
	timely(t, func(s *stage, lease time.Duration) (late string) {
		p := s.lock(family)
		grandchild, child := s.await("grandchild"), s.await("pid")
		time.Sleep(3 * lease / 2) // it lives by renewals
		if !proctest.Running(child) {
			return "ended while the lease was renewed: " + p.stderr.String()
		}
		p.cmd.Process.Signal(syscall.SIGSTOP)
		end := time.Now().Add(lease) // at the latest: no renewal was sent after the stop
		g := s.next()
		defer g.Unlock()
		if late = s.leaves(child, grandchild, end); late != "" {
			return late
		}
		p.cmd.Process.Signal(syscall.SIGCONT)
		p.want(cli.ExitLost)
		if !strings.Contains(p.stderr.String(), `lock "a" was lost`) {
			t.Errorf("stderr %q", p.stderr.String())
		}
		return ""
	})
}

// leaves says what of a family lives, or did after the end of its lease.
func (s *stage) leaves(child, grandchild int, end time.Time) (late string) {
	s.t.Helper()
	if a, b := proctest.Running(child), proctest.Running(grandchild); a || b {
		return fmt.Sprintf("processes are left: child %v, grandchild %v", a, b)
	}
	if last := time.Unix(0, int64(s.await("beat"))); last.After(end) {
		return fmt.Sprintf("the group ran until %v after the lease", last.Sub(end))
	}
	return ""
}

// Everything is stopped for three leases and continued. Somebody else has had the
// lock by then, and the resource knows a larger token.
func TestAllStopped(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.lock(family)
	grandchild, child, token := s.await("grandchild"), s.await("pid"), s.await("token")
	dog := p.watchdog()
	var resource fence.Checker
	if err := resource.Check("a", uint64(token)); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{p.cmd.Process.Pid, dog, -child} {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	time.Sleep(3 * lease)
	g := s.next()
	if err := resource.Check("a", g.Token()); err != nil {
		t.Error(err)
	}
	for _, pid := range []int{-child, dog, p.cmd.Process.Pid} {
		syscall.Kill(pid, syscall.SIGCONT)
	}
	if err := resource.Check("a", uint64(token)); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the stale token: %v", err)
	}
	p.want(cli.ExitLost)
	if !strings.Contains(p.stderr.String(), `lock "a" was lost`) {
		t.Errorf("stderr %q", p.stderr.String())
	}
	if proctest.Running(child) || proctest.Running(grandchild) || proctest.Running(dog) {
		t.Error("processes are left")
	}
	if err := g.Unlock(); err != nil {
		t.Errorf("the next holder: %v", err)
	}
}

// A server loses its memory under a holder: one of four may, and nothing is lost.
func TestLockOutlivesServerRestart(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	// A lease that a busy machine renews in time: nothing here waits for its end.
	s.flags = append(s.flags, "--lease", (5 * lease).String())
	p := s.lock("echo $$ >pid; sleep 2.5; echo 1 >done")
	s.await("pid")
	if err := s.local.Stop(0); err != nil {
		t.Fatal(err)
	}
	time.Sleep(lease / 2)
	if err := s.local.Start(0); err != nil {
		t.Fatal(err)
	}
	p.want(0)
	if _, err := s.read("done"); err != nil {
		t.Error(err)
	}
}

// All servers end: the command does before the lease.
func TestLockLosesServers(t *testing.T) {
	t.Parallel()
	timely(t, func(s *stage, lease time.Duration) (late string) {
		p := s.lock(family)
		grandchild, child := s.await("grandchild"), s.await("pid")
		if err := s.local.Close(); err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(lease) // at the latest: nobody renews any more
		p.want(cli.ExitLost)
		p.says("was lost while its command ran: ")
		return s.leaves(child, grandchild, end)
	})
}

// A loss has a reason, also where the watchdog was quicker than the lease.
func TestLostError(t *testing.T) {
	for cause, want := range map[error]string{
		poundlock.ErrLost: "its lease was about to end: too few servers answered",
		errors.New(`poundlock: lock "b" lost: leases at s1, s2 lapsed`): "leases at s1, s2 lapsed",
	} {
		err := new(holdFlags).lostError([]string{"a", "b"}, cause)
		if got := err.Error(); got != `lock "a, b" was lost while its command ran: `+want {
			t.Errorf("%v: %s", cause, got)
		}
	}
}

// Two clients try one free name at once: at most one gets it, and losing proves
// nothing, so both may lose. One that tries alone gets it.
func TestTwoTry(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	args := append(append([]string{"lock", "-n", "b"}, s.flags...), "--", "sh", "-c",
		"mkdir inside || exit 9; sleep 0.05; rmdir inside")
	for range 3 {
		var two [2]*exec.Cmd
		for i := range two {
			two[i] = clitest.Command(args...)
			two[i].Dir = s.dir
			if err := two[i].Start(); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range two {
			c.Wait()
			if status := c.ProcessState.ExitCode(); status != 0 && status != cli.ExitNotAcquired {
				t.Errorf("exit status %d", status)
			}
		}
	}
	alone := clitest.Command(args...)
	alone.Dir = s.dir
	if err := alone.Run(); err != nil {
		t.Errorf("alone: %v", err)
	}
}
