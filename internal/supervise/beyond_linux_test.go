package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
)

// nobody is a user without rights.
const nobody = 65534

// strange is a script that starts a process of root's in its group, through a set-uid
// program, and waits for it.
const strange = `
./rooted --reuid=0 --regid=0 --clear-groups sh -c 'trap "" TERM; echo $$ >pid; until test -e end; do sleep 0.02; done' &
until test -s pid; do sleep 0.02; done
echo $$ >pid2
wait`

// asNobody are the options for a supervisor of another user, in whose directory a set-uid
// program is. The test may end what is root's by the file "end".
func asNobody(t *testing.T) options {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: a set-uid program and another user need root")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("SKIPPED: setpriv of util-linux is not installed")
	}
	dir := proctest.SocketDir(t)
	o := options{dir: dir, program: filepath.Join(dir, "program")}
	o.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	err = os.Chmod(dir, 0o777)
	for from, to := range map[string]string{os.Args[0]: o.program, setpriv: filepath.Join(dir, "rooted")} {
		var b []byte
		if err == nil {
			b, err = os.ReadFile(from)
		}
		if err == nil {
			err = os.WriteFile(to, b, 0o755)
		}
	}
	if err == nil {
		err = os.Chmod(filepath.Join(dir, "rooted"), os.ModeSetuid|0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (l *lock) letEnd() {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, "end"), nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lock) says(text string) {
	l.t.Helper()
	eventually(l.t, patience, "it says "+text, func() bool { return strings.Contains(l.stderr.String(), text) })
}

const noRight = "has a process of another user, which poundlock has no right to end"

// A process that the supervisor may not end: it says so as soon as there is one, and when
// it should end it, and returns only when that process has ended.
func TestBeyond(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		action Action
		lose   time.Duration // 0: a signal ends the command
		status int
	}{
		"term":   {Term, 300 * time.Millisecond, statusLost},
		"kill":   {Kill, 300 * time.Millisecond, statusLost},
		"signal": {Term, 0, 137},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "term" {
				lane.CI.Need(t, "five seconds")
			}
			o := asNobody(t)
			t.Parallel()
			o.action, o.lose, o.grace = story.action, story.lose, 300*time.Millisecond
			l := script(t, o, strange)
			leader, root := l.pid("pid2"), l.pid("pid")
			l.says(noRight + `: should lock "pretence" be lost`)
			if story.lose == 0 {
				syscall.Kill(leader, syscall.SIGKILL)
			}
			l.says(noRight + "; the lock is held until that has ended")
			time.Sleep(3 * time.Second)     // longer than the grace, and than the kernel takes to kill
			supervisor := l.cmd.Process.Pid // l.over waits for the pipes, which root's process has
			if proctest.Running(leader) || !proctest.Running(supervisor) || !proctest.Running(root) {
				t.Errorf("leader running %v, supervisor running %v, root's process running %v",
					proctest.Running(leader), proctest.Running(supervisor), proctest.Running(root))
			}
			l.letEnd()
			l.want(story.status)
			if proctest.Running(root) || strings.Contains(l.stderr.String(), "ending its command") {
				t.Errorf("root's process running %v, stderr: %s", proctest.Running(root), l.stderr.String())
			}
		})
	}
}

// The lock is lost in truth: nothing is held any more, and the user is told so.
func TestBeyondLost(t *testing.T) {
	o := asNobody(t)
	t.Parallel()
	o.lose, o.lease = -300*time.Millisecond, 2*time.Second
	l := script(t, o, strange)
	l.says(noRight + "; somebody else may get the lock while it runs on")
	l.letEnd()
	l.want(statusLost)
}

// The supervisor is killed: the watchdog does not say that it ends what it cannot end.
func TestBeyondOrphaned(t *testing.T) {
	o := asNobody(t)
	t.Parallel()
	l := script(t, o, strange)
	leader, root, dog := l.pid("pid2"), l.pid("pid"), l.watchdog()
	l.cmd.Process.Kill()
	l.says("poundlock was killed: process group")
	l.says(noRight + "; it runs on when somebody else has the lock")
	eventually(t, patience, "the leader ends", gone(leader))
	if !proctest.Running(root) || strings.Contains(l.stderr.String(), "ending its command") {
		t.Errorf("root's process running %v, stderr: %s", proctest.Running(root), l.stderr.String())
	}
	eventually(t, patience, "the watchdog has ended", gone(dog))
	if l.saidGoodbye() {
		t.Error("the watchdog says good-bye while root's process runs")
	}
	l.letEnd()
	eventually(t, patience, "it ends by itself", gone(root))
}
