//go:build unix

package supervise

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
)

// A lock is a running supervisor.
type lock struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string
	lease  time.Duration
	stdout bytes.Buffer
	stderr proctest.Log
	ended  chan struct{}
}

const (
	always   = time.Hour   // of renewing: longer than any test
	patience = time.Minute // for what must come at last, on any machine
)

// options are the arguments of pretend; the zero value is a lock that holds.
type options struct {
	lease, grace, renew, lose time.Duration
	action                    Action
	stdin                     string
	program, dir              string // that of others to use; "": the test's own
	env                       []string
	attr                      *syscall.SysProcAttr
}

// start runs a shell script under a lock. Its working directory is l.dir.
func start(t *testing.T, o options, command ...string) *lock {
	t.Helper()
	if o.lease == 0 {
		o.lease = time.Minute
	}
	if o.grace == 0 {
		o.grace = 5 * time.Second
	}
	if o.action == "" {
		o.action = Term
	}
	if o.renew == 0 {
		o.renew = always
	}
	if o.dir == "" {
		o.dir = t.TempDir()
	}
	l := &lock{t: t, dir: o.dir, lease: o.lease, ended: make(chan struct{})}
	args := append([]string{
		"pretend", o.lease.String(), string(o.action), o.grace.String(),
		o.renew.String(), o.lose.String(), "--",
	}, command...)
	l.cmd = exec.Command(cmp.Or(o.program, os.Args[0]), args...)
	l.cmd.Dir, l.cmd.SysProcAttr = l.dir, o.attr
	l.cmd.Env = append(append(os.Environ(), "SELF="+l.cmd.Path), o.env...)
	l.cmd.Stdin = strings.NewReader(o.stdin)
	l.cmd.Stdout, l.cmd.Stderr = &l.stdout, &l.stderr
	l.cmd.WaitDelay = 10 * time.Second // orphans may hold the pipes
	if err := os.WriteFile(filepath.Join(l.dir, "lease"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		l.cmd.Wait()
		close(l.ended)
	}()
	t.Cleanup(func() {
		for _, name := range []string{"pid", "pid2"} {
			if pid, err := l.readPid(name); err == nil {
				syscall.Kill(-pid, syscall.SIGKILL)
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		l.cmd.Process.Kill()
		<-l.ended
	})
	return l
}

// script is start with a shell.
func script(t *testing.T, o options, text string) *lock {
	t.Helper()
	return start(t, o, "/bin/sh", "-c", text)
}

// status waits for the supervisor to exit.
func (l *lock) status() int {
	l.t.Helper()
	select {
	case <-l.ended:
	case <-time.After(patience):
		l.t.Fatalf("does not end; stderr: %s", l.stderr.String())
	}
	return l.cmd.ProcessState.ExitCode()
}

// over reports whether the supervisor has exited.
func (l *lock) over() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

func (l *lock) want(status int) {
	l.t.Helper()
	if got := l.status(); got != status {
		l.t.Fatalf("exit status %d, want %d; stderr: %s", got, status, l.stderr.String())
	}
}

func (l *lock) readPid(name string) (int, error) {
	b, err := os.ReadFile(filepath.Join(l.dir, name))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// pid waits until the script has written a process id to a file.
func (l *lock) pid(name string) int {
	l.t.Helper()
	var pid int
	eventually(l.t, patience, "file "+name, func() bool {
		var err error
		pid, err = l.readPid(name)
		return err == nil
	})
	return pid
}

// instant reads a time that a process wrote to a file.
func (l *lock) instant(name string) time.Time {
	l.t.Helper()
	b, err := os.ReadFile(filepath.Join(l.dir, name))
	if err != nil {
		l.t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	at, err := time.Parse(time.RFC3339Nano, line)
	if err != nil {
		l.t.Fatal(err)
	}
	return at
}

// stubborn is a script whose group obeys SIGKILL only, with a process that tells
// until when it ran.
const stubborn = `trap '' TERM
"$SELF" beat & echo $! >pid2
while ! test -s beat; do sleep 0.01; done
echo $$ >pid
while :; do sleep 0.1; done`

// timely runs stubborn under a lease, has it end, and fails when it does so after
// the lease, or when endIt says that the machine was too slow for the test. A machine that pauses for longer than the margin, a tenth of a lease,
// makes anything late: then it tries again with twice the lease, in which a pause
// weighs half, and what is wrong with the package as much as before.
func timely(t *testing.T, o options, endIt func(l *lock) bool) {
	t.Helper()
	for ; ; o.lease *= 2 {
		l := script(t, o, stubborn)
		began := time.Now()
		ready := func() bool { _, err := l.readPid("pid"); return err == nil }
		eventually(t, patience, "the script is ready or too late", func() bool { return ready() || l.over() })
		left := time.Duration(-1)
		if ready() && endIt(l) {
			eventually(t, 3*o.lease+patience, "the group has ended", func() bool {
				return !proctest.Running(l.pid("pid")) && !proctest.Running(l.pid("pid2"))
			})
			left = l.instant("lease").Sub(l.instant("beat"))
		}
		t.Logf("under a lease of %v the group ended %v before it, after %v", o.lease, left, time.Since(began))
		if left >= 0 {
			return
		}
		if o.lease > 6*time.Second {
			t.Fatal("that is too late")
		}
		l.cmd.Process.Kill() // it may be stopped
		l.status()
	}
}

func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

func gone(pid int) func() bool { return func() bool { return !proctest.Running(pid) } }

// watchdog waits for the watchdog among the supervisor's children.
func (l *lock) watchdog() int {
	l.t.Helper()
	pid := 0
	eventually(l.t, patience, "a watchdog", func() bool {
		pid = proctest.Child(l.cmd.Process.Pid, WatchdogCommand)
		return pid != 0
	})
	return pid
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		command []string
		status  int
	}{
		{[]string{"true"}, 0},
		{[]string{"sh", "-c", "exit 7"}, 7},
		{[]string{"sh", "-c", "exit 255"}, 255},
		{[]string{"sh", "-c", "kill -KILL $$"}, 137},
		{[]string{"sh", "-c", "kill -TERM $$"}, 143},
		{[]string{"no-such-command"}, 127},
		{[]string{"./no-such-command"}, 127},
		{[]string{"/"}, 126},
		{[]string{"/dev/null"}, 126},
	} {
		t.Run(strings.Join(x.command, " "), func(t *testing.T) {
			t.Parallel()
			start(t, options{}, x.command...).want(x.status)
		})
	}
}

// A file in PATH that may not be executed is 126, as for execvp(3); one without a
// format is a script.
func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("plain", "exit 3\n", 0o600)
	write("script", "exit $1\n", 0o700)
	write("lost", "#!/no/such/interpreter\n", 0o700)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	start(t, options{}, "plain").want(126)
	start(t, options{}, "script", "9").want(9)
	start(t, options{}, "lost").want(127)
}

func TestStreamsAndDescriptors(t *testing.T) {
	const list = "ls /proc/self/fd | wc -l"
	bare, err := exec.Command("sh", "-c", list).Output()
	if err != nil {
		t.Fatal(err)
	}
	l := script(t, options{stdin: "in "}, "cat; echo err >&2; "+list)
	l.want(0)
	if got, want := l.stdout.String(), "in "+string(bare); got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	if got := l.stderr.String(); got != "err\n" {
		t.Errorf("stderr %q", got)
	}
}

// A descriptor that the supervisor was given reaches the command under its number.
func TestInheritedDescriptor(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := exec.Command(os.Args[0], "pretend", "1m", "term", "1s", "1h", "0s", "--", "sh", "-c", "echo here >&3")
	c.Dir = t.TempDir() // a busy machine may have the watchdog say good-bye there
	c.ExtraFiles = []*os.File{w}
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	b := make([]byte, 16)
	n, _ := r.Read(b)
	if got := string(b[:n]); got != "here\n" {
		t.Errorf("read %q", got)
	}
}

func TestSignalsReachTheGroup(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		name   string
		signal syscall.Signal
	}{
		{"HUP", syscall.SIGHUP},
		{"INT", syscall.SIGINT},
		{"QUIT", syscall.SIGQUIT},
		{"USR1", syscall.SIGUSR1},
		{"USR2", syscall.SIGUSR2},
		{"ALRM", syscall.SIGALRM},
		{"TERM", syscall.SIGTERM},
		{"WINCH", syscall.SIGWINCH},
		{"CONT", syscall.SIGCONT},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			l := script(t, options{}, "trap 'exit 9' "+s.name+"; echo $$ >pid; while :; do sleep 0.02; done")
			l.pid("pid")
			l.cmd.Process.Signal(s.signal)
			l.want(9)
		})
	}
}

func TestEndedBySignal(t *testing.T) {
	t.Parallel()
	l := script(t, options{}, "sleep 60 & echo $! >pid; wait")
	sleep := l.pid("pid")
	l.cmd.Process.Signal(syscall.SIGTERM)
	l.want(143)
	if proctest.Running(sleep) {
		t.Error("the signal did not reach the whole group")
	}
}

// A command that ended by itself may leave something behind, a command that was
// killed may not.
func TestRestOfTheGroup(t *testing.T) {
	const leave = "(trap '' HUP; exec sleep 60) >/dev/null 2>&1 & echo $! >pid; "
	t.Run("exited", func(t *testing.T) {
		l := script(t, options{}, leave+"exit 5")
		l.want(5)
		if !proctest.Running(l.pid("pid")) {
			t.Error("ended")
		}
	})
	t.Run("killed", func(t *testing.T) {
		l := script(t, options{}, leave+"kill -KILL $$")
		l.want(137)
		if proctest.Running(l.pid("pid")) {
			t.Error("lives on without a lock")
		}
	})
}

func TestLoss(t *testing.T) {
	t.Parallel()
	t.Run("term", func(t *testing.T) {
		t.Parallel()
		l := script(t, options{lose: 300 * time.Millisecond},
			"trap 'echo bye; exit 0' TERM; echo $$ >pid; while :; do sleep 0.02; done")
		l.want(statusLost)
		if l.stdout.String() != "bye\n" || !strings.Contains(l.stderr.String(), "is lost") {
			t.Errorf("stdout %q, stderr %q", l.stdout.String(), l.stderr.String())
		}
	})
	t.Run("grace", func(t *testing.T) {
		t.Parallel()
		l := script(t, options{lose: 300 * time.Millisecond, grace: 300 * time.Millisecond}, stubborn)
		l.want(statusLost)
		if proctest.Running(l.pid("pid2")) {
			t.Error("the group lives on")
		}
	})
	t.Run("background outlives TERM", func(t *testing.T) {
		t.Parallel()
		l := script(t, options{lose: 300 * time.Millisecond, grace: 300 * time.Millisecond},
			"(trap '' TERM; while :; do sleep 0.1; done) & echo $! >pid2; exec sleep 60")
		l.want(statusLost)
		if proctest.Running(l.pid("pid2")) {
			t.Error("the group lives on")
		}
	})
	t.Run("kill", func(t *testing.T) {
		t.Parallel()
		l := script(t, options{lose: 300 * time.Millisecond, action: Kill, grace: time.Hour}, stubborn)
		l.want(statusLost)
		if proctest.Running(l.pid("pid2")) {
			t.Error("the group lives on")
		}
	})
	t.Run("warn", func(t *testing.T) {
		t.Parallel()
		l := script(t, options{lose: 100 * time.Millisecond, action: Warn}, "echo $$ >pid; sleep 0.5; echo done")
		l.want(statusLost)
		if l.stdout.String() != "done\n" {
			t.Errorf("stdout %q", l.stdout.String())
		}
	})
	t.Run("stopped group", func(t *testing.T) {
		t.Parallel()
		l := script(t, options{lose: 300 * time.Millisecond},
			"trap 'echo bye; exit 0' TERM; echo $$ >pid; kill -STOP $$; sleep 60")
		l.want(statusLost)
		if l.stdout.String() != "bye\n" {
			t.Errorf("stdout %q", l.stdout.String())
		}
	})
}

// An end that moves into the past, as when too many servers have restarted, is a
// loss like any other: the command gets SIGTERM and its grace, and not SIGKILL.
func TestEndIsPast(t *testing.T) {
	t.Parallel()
	l := script(t, options{lose: -300 * time.Millisecond, lease: 10 * time.Second},
		"trap 'sleep 0.2; echo bye; exit 0' TERM; echo $$ >pid; while :; do sleep 0.02; done")
	l.want(statusLost)
	if l.stdout.String() != "bye\n" || !strings.Contains(l.stderr.String(), "is lost") {
		t.Errorf("stdout %q, stderr %q", l.stdout.String(), l.stderr.String())
	}
}

// The supervisor is killed: the command and what it started end before the lease.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	t.Run("stubborn", func(t *testing.T) {
		t.Parallel()
		var dog int
		timely(t, options{lease: time.Second}, func(l *lock) bool {
			dog = l.watchdog()
			l.cmd.Process.Kill()
			return true
		})
		eventually(t, patience, "the watchdog has ended", gone(dog))
	})
	t.Run("obedient", func(t *testing.T) {
		t.Parallel()
		l := script(t, options{}, "sleep 60 & echo $! >pid2; echo $$ >pid; wait")
		pid2, pid := l.pid("pid2"), l.pid("pid")
		dog := l.watchdog()
		l.cmd.Process.Kill()
		for _, p := range []int{pid, pid2, dog} {
			eventually(t, patience, "all have ended", gone(p))
		}
	})
}

// Which command of poundlock it was the watchdog does not know: lock, or elect.
func TestWatchdogSays(t *testing.T) {
	c := exec.Command("sleep", "60")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go c.Wait()
	var log strings.Builder
	w := &watch{name: "a", action: Kill, out: io.Discard, log: &log}
	in := fmt.Sprintf(`{"Group":%d,"Lease":%d,"End":%d}`, c.Process.Pid, time.Minute, now()+time.Minute)
	if err := w.run(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("poundlock: watchdog: lock \"a\": poundlock was killed: ending its command, process group %d\n", c.Process.Pid)
	if log.String() != want {
		t.Errorf("%q, want %q", log.String(), want)
	}
}

// A watchdog asks a command to end that has the time for it, and no other.
func TestLateWatchdog(t *testing.T) {
	for asked, left := range map[bool]time.Duration{true: time.Minute, false: 9 * time.Second} {
		dir := t.TempDir()
		c := exec.Command("sh", "-c", "trap 'echo >asked; exit' TERM; echo >ready; while :; do sleep 0.02; done")
		c.Dir, c.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		go c.Wait()
		is := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
		eventually(t, patience, "the command is ready", func() bool { return is("ready") })
		w := &watch{name: "a", action: Term, grace: 8 * time.Second, out: io.Discard, log: io.Discard}
		in := fmt.Sprintf(`{"Group":%d,"Lease":%d,"End":%d}`, c.Process.Pid, time.Minute, now()+left) // the margin is 6s
		if err := w.run(strings.NewReader(in)); err != nil {
			t.Fatal(err)
		}
		if is("asked") != asked || proctest.Running(c.Process.Pid) {
			t.Errorf("with %v of the lease left: asked %v, runs on %v", left, is("asked"), proctest.Running(c.Process.Pid))
		}
	}
}

// All processes of the supervisor's name are killed, as killall and pkill do: the watchdog
// has another one, and ends what obeys SIGKILL only, with what that has started.
func TestAllOfOneNameKilled(t *testing.T) {
	t.Parallel()
	timely(t, options{lease: 2 * time.Second}, func(l *lock) bool {
		if killed := proctest.KillNamesakes(l.cmd.Process.Pid); killed != 1 {
			t.Errorf("%d processes are killed, want the supervisor alone", killed)
		}
		return true
	})
}

// The supervisor and its watchdog are stopped, and the command is not: it runs on after
// the lease, and is ended as soon as one of them continues.
func TestBothStopped(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second // so that the script is there before it ends
	l := script(t, options{lease: lease}, "echo $$ >pid; while :; do sleep 0.02; done")
	pid, dog := l.pid("pid"), l.watchdog()
	for _, p := range []int{l.cmd.Process.Pid, dog} {
		syscall.Kill(p, syscall.SIGSTOP)
	}
	time.Sleep(2 * lease)
	if !proctest.Running(pid) {
		t.Error("somebody ended it: the documents say that nobody does")
	}
	syscall.Kill(dog, syscall.SIGCONT)
	eventually(t, patience, "the watchdog ends it", gone(pid))
	l.cmd.Process.Signal(syscall.SIGCONT)
	l.want(statusLost)
}

// The supervisor is stopped: the watchdog ends the group before the lease ends.
func TestSupervisorStopped(t *testing.T) {
	t.Parallel()
	var l *lock
	timely(t, options{lease: time.Second}, func(x *lock) bool {
		l = x
		time.Sleep(l.lease * 4 / 3) // so that it lives by renewals
		alive := proctest.Running(l.pid("pid"))
		l.cmd.Process.Signal(syscall.SIGSTOP)
		return alive
	})
	l.cmd.Process.Signal(syscall.SIGCONT)
	l.want(statusLost)
}

// Everything is stopped for three leases and continued.
func TestAllStopped(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "four seconds of stopped processes")
	const lease = 3 * time.Second // so that the script is there before it ends
	l := script(t, options{lease: lease}, "echo $$ >pid; while :; do sleep 0.02; done")
	pid, dog, lock := l.pid("pid"), l.watchdog(), l.cmd.Process.Pid
	for _, p := range []int{lock, dog, -pid} {
		syscall.Kill(p, syscall.SIGSTOP)
	}
	time.Sleep(lease + time.Second)
	for _, p := range []int{-pid, dog, lock} {
		syscall.Kill(p, syscall.SIGCONT)
	}
	l.want(statusLost)
	if proctest.Running(pid) || proctest.Running(dog) {
		t.Error("processes are left")
	}
}

// The lease is not renewed: the group ends before it, though the supervisor runs.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	for _, action := range []Action{Term, Kill} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			var l *lock
			var held time.Duration
			timely(t, options{lease: 2 * time.Second, renew: 1, action: action}, func(x *lock) bool {
				l = x
				began := l.instant("lease").Add(-l.lease)
				eventually(t, patience, "it ends by itself", gone(l.pid("pid")))
				held = time.Since(began)
				return true
			})
			if held < l.lease/2 {
				t.Errorf("ended after %v already", held)
			}
			l.want(statusLost)
		})
	}
}

// A watchdog that somebody kills is replaced.
func TestWatchdogKilled(t *testing.T) {
	t.Parallel()
	timely(t, options{lease: time.Second}, func(l *lock) bool {
		first := l.watchdog()
		syscall.Kill(first, syscall.SIGKILL)
		replaced := func() bool { return strings.Contains(l.stderr.String(), "was killed and is replaced") }
		eventually(t, patience, "another watchdog", func() bool { return replaced() || l.over() })
		if !replaced() {
			return false // there was no time: the lease has ended
		}
		if l.watchdog() == first {
			t.Error("it lives")
		}
		l.cmd.Process.Signal(syscall.SIGSTOP)
		return true
	})
}

// A watchdog that is stopped delays nobody for long.
func TestWatchdogStopped(t *testing.T) {
	t.Parallel()
	l := script(t, options{}, "echo $$ >pid; exec sleep 60")
	l.pid("pid")
	syscall.Kill(l.watchdog(), syscall.SIGSTOP)
	l.cmd.Process.Signal(syscall.SIGTERM)
	l.want(143)
}

// A gate that is not opened does not run its command.
func TestGateCloses(t *testing.T) {
	for _, x := range []struct {
		name string
		open func(w *os.File)
		ran  bool
	}{
		{"supervisor died", func(*os.File) {}, false},
		{"lease over", func(w *os.File) { openGate(w, now()-1) }, false},
		{"opened", func(w *os.File) { openGate(w, now()+time.Minute) }, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			c := exec.Command(os.Args[0], GateCommand, "3", "echo", "ran")
			c.Stdout = &out
			c.ExtraFiles = []*os.File{r}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			r.Close()
			x.open(w)
			w.Close()
			c.Wait()
			if ran := out.String() == "ran\n"; ran != x.ran {
				t.Errorf("ran: %v", ran)
			}
			if !x.ran && c.ProcessState.ExitCode() != statusClosed {
				t.Errorf("status %d", c.ProcessState.ExitCode())
			}
		})
	}
}
