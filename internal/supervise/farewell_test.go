//go:build unix

package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func (l *lock) saidGoodbye() bool {
	l.t.Helper()
	_, err := os.Stat(filepath.Join(l.dir, "farewell"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		l.t.Fatal(err)
	}
	return err == nil
}

// The watchdog says good-bye for a supervisor that was killed, long before the lease ends, and after the end of a group
// that takes all of its grace: also one that has replaced another.
func TestFarewell(t *testing.T) {
	t.Parallel()
	for _, replaced := range []bool{false, true} {
		t.Run(fmt.Sprintf("replaced %v", replaced), func(t *testing.T) {
			t.Parallel()
			o := options{lease: time.Minute, grace: 300 * time.Millisecond}
			if replaced {
				o.lease = 10 * time.Second // a tenth of it later it is
			}
			l := script(t, o, stubborn)
			l.pid("pid")
			dog := l.watchdog()
			if replaced {
				syscall.Kill(dog, syscall.SIGKILL)
				eventually(t, patience, "another watchdog", func() bool {
					return strings.Contains(l.stderr.String(), "was killed and is replaced")
				})
				dog = l.watchdog()
			}
			l.cmd.Process.Kill()
			killed := time.Now()
			eventually(t, patience, "the watchdog has ended", gone(dog))
			if !l.saidGoodbye() {
				t.Fatalf("it has said no good-bye; stderr: %s", l.stderr.String())
			}
			said, beat := l.instant("farewell"), l.instant("beat")
			if said.Before(killed.Add(o.grace * 9 / 10)) {
				t.Errorf("%v after the kill: the group did not have its grace, so this shows nothing", said.Sub(killed))
			}
			if beat.After(said) {
				t.Errorf("the group ran until %v after the good-bye", beat.Sub(said))
			}
			t.Logf("%v after the kill, of which the grace is %v", said.Sub(killed), o.grace)
		})
	}
}

// No good-bye is said for a supervisor that lives, nor when a process of the command may live.
func TestNoFarewell(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		options
		script string
		do     func(l *lock)
	}{
		"stopped until the lease ends": {
			options{lease: 3 * time.Second, renew: 1},
			"echo $$ >pid; exec sleep 60",
			func(l *lock) { l.cmd.Process.Signal(syscall.SIGSTOP) },
		},
		"ended": {
			options{},
			"echo $$ >pid; exec sleep 60",
			func(l *lock) { l.cmd.Process.Signal(syscall.SIGTERM) },
		},
		"left the group": {
			options{},
			`setsid sh -c 'echo $$ >pid2; exec sleep 60' & until test -s pid2; do sleep 0.02; done; echo $$ >pid; wait`,
			func(l *lock) { l.cmd.Process.Kill() },
		},
		"left the group, and its parent ended": {
			options{},
			`(setsid sh -c 'echo $$ >pid2; exec sleep 60' &); until test -s pid2; do sleep 0.02; done; echo $$ >pid; exec sleep 60`,
			func(l *lock) { l.cmd.Process.Kill() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat("/proc/self/stat"); err != nil && strings.Contains(name, "left") {
				t.Skip("SKIPPED: nobody knows here who has left a group")
			}
			l := script(t, story.options, story.script)
			l.pid("pid")
			dog := l.watchdog()
			story.do(l)
			eventually(t, patience, "the watchdog has ended", gone(dog))
			if l.saidGoodbye() {
				t.Errorf("a good-bye; stderr: %s", l.stderr.String())
			}
		})
	}
}

// Before the command has begun there is nothing to wait for. What is certain of the supervisor is whose child the watchdog is.
func TestFarewellBeforeTheCommand(t *testing.T) {
	for name, story := range map[string]struct {
		in   string
		want bool
	}{
		"killed":  {`{"Farewell":"x","Supervisor":1234567890}`, true},
		"renewed": {`{"Farewell":"y","Supervisor":1234567890}{"Farewell":"x","Supervisor":1234567890}`, true},
		"lives":   {fmt.Sprintf(`{"Farewell":"x","Supervisor":%d}`, os.Getppid()), false},
		"ended":   {`{"Farewell":"x","Supervisor":1234567890}{"Bye":true}`, false},
		"nothing": {``, false},
	} {
		said := ""
		w := &watch{name: "a", action: Kill, out: io.Discard, log: io.Discard, farewell: func(will []byte) error {
			said += string(will)
			return nil
		}}
		if err := w.run(strings.NewReader(story.in)); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]string{true: `"x"`}[story.want]; said != want {
			t.Errorf("%s: says %q, want %q", name, said, want)
		}
	}
}

// A farewell that is longer than a pipe has room for arrives, because the watchdog reads it.
func TestLongFarewell(t *testing.T) {
	dog, err := StartWatchdog("a", Kill, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer dog.Close()
	dog.SetFarewell([]byte(`"` + strings.Repeat("x", 1<<20) + `"`))
	c := exec.Command("sleep", "60")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	if err := dog.arm(group{id: c.Process.Pid}, time.Minute, now()+time.Minute); err != nil {
		t.Error(err)
	}
}
