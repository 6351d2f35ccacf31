package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
)

// at is the instant that a script wrote to a file, in nanoseconds.
func (s *stage) at(name string) time.Time { return time.Unix(0, int64(s.await(name))) }

// A holder that is killed is followed long before its lease ends, and not before its group has ended, which takes
// all of the grace here. So is one that leads.
func TestKilledHolderIsFollowed(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"lock", "elect"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			const grace = 500 * time.Millisecond
			s := newStage(t)
			s.flags = append(s.flags, "--lease", "30s", "--grace", grace.String())
			p := s.start(verb, family)
			s.await("pid")
			grandchild, dog := s.await("grandchild"), p.watchdog()
			p.cmd.Process.Kill()
			killed := time.Now()
			g := s.next()
			followed := time.Now()
			defer g.Unlock()
			if last := s.at("beat"); last.After(followed) || proctest.Running(grandchild) {
				t.Errorf("the group ran at the next grant, and until %v", last.Sub(followed))
			}
			t.Logf("followed %v after the kill, of which the grace is %v", followed.Sub(killed), grace)
			if took := followed.Sub(killed); took < grace*9/10 || took > 20*time.Second {
				t.Errorf("followed after %v, under a grace of %v and a lease of 30s; stderr: %s", took, grace, p.stderr.String())
			}
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", dog)); err == nil && strings.Contains(string(text), "Secret") {
				t.Errorf("others see %q", text)
			}
		})
	}
}

// A waiter that is killed keeps nobody waiting when its turn comes.
func TestKilledWaiterIsPassed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.flags = append(s.flags, "--lease", "30s")
	held := s.next()
	p := s.lock("echo $$ >pid")
	o, err := observe(s.config, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if l, err := one(t.Context(), o, "a"); err == nil && len(l.Waiters) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not wait")
		}
	}
	p.cmd.Process.Kill()
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	g := s.next()
	defer g.Unlock()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("its turn took %v, under a lease of 30s", took)
	}
}

// What has left the process group of a killed holder's command ends with its control group, or else runs on: then nobody
// follows before the lease ends.
func TestStrayOfAKilledHolder(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: nobody knows here who has left a group")
	}
	s := newStage(t)
	const lease = 4 * time.Second
	s.flags = append(s.flags, "--lease", lease.String())
	p := s.start("lock", `setsid sh -c 'echo $$ >stray; exec sleep 60' & until test -s stray; do sleep 0.02; done; echo $$ >pid; wait`)
	s.await("pid")
	stray := s.await("stray")
	t.Cleanup(func() { syscall.Kill(stray, syscall.SIGKILL) })
	killed := time.Now()
	p.cmd.Process.Kill()
	g := s.next()
	defer g.Unlock()
	// The last renewal was a quarter of the lease before, or somewhat more.
	took, lives := time.Since(killed), proctest.Running(stray)
	t.Logf("followed after %v, while what had left the group ran: %v", took, lives)
	if lives && took < lease/2 {
		t.Errorf("that is within the lease of %v", lease)
	}
}

// A holder whose watchdog was replaced is followed long before its lease ends.
func TestReplacedWatchdogSaysGoodbye(t *testing.T) {
	s := newStage(t)
	const lease = 20 * time.Second
	s.flags = append(s.flags, "--lease", lease.String(), "--grace", "100ms")
	p := s.lock("echo $$ >pid; exec sleep 60")
	s.await("pid")
	dog := p.watchdog()
	syscall.Kill(dog, syscall.SIGKILL)
	p.says("is replaced")
	time.Sleep(300 * time.Millisecond)
	p.cmd.Process.Kill()
	killed := time.Now()
	g := s.next()
	defer g.Unlock()
	took := time.Since(killed)
	t.Logf("followed after %v; stderr: %s", took, p.stderr.String())
	if took > lease/4 {
		t.Errorf("followed after %v, under a lease of %v", took, lease)
	}
}
