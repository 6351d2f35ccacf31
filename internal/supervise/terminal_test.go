//go:build unix

package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
)

// underLock is a pretended lock before a command, for a program that leads its session.
func underLock(command ...string) []string {
	return append([]string{os.Args[0], "pretend", "1m", "term", "1s", "1h", "0s", "--"}, command...)
}

func TestInteractiveRead(t *testing.T) {
	t.Parallel()
	c := proctest.Open(t, nil, underLock("sh", "-c", `echo who; read x; echo "hello, $x"`)...)
	c.See("who")
	c.Keys("you\n")
	c.See("hello, you")
	c.Want(0)
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	c := proctest.Open(t, nil, underLock("sh", "-c", "echo go; exec sleep 60")...)
	c.See("go")
	c.Keys(proctest.CtrlC)
	c.Want(130)
}

// A command may handle the interrupt itself: nobody else got it.
func TestInterruptHandled(t *testing.T) {
	t.Parallel()
	c := proctest.Open(t, nil, underLock("sh", "-c", "trap 'echo got it; exit 3' INT; echo go; while :; do sleep 0.02; done")...)
	c.See("go")
	c.Keys(proctest.CtrlC)
	c.See("got it")
	c.Want(3)
}

func TestCommandLeadsTheForeground(t *testing.T) {
	t.Parallel()
	// PID, group and foreground group are fields 1, 5 and 8.
	c := proctest.Open(t, nil, underLock("sh", "-c", `set -- $(cat /proc/$$/stat); echo $(($1 == $5)) $(($5 == $8))`)...)
	c.See("1 1")
	c.Want(0)
}

// Nobody could continue a group without a shell: ^Z must not hang it.
func TestStopWithoutShell(t *testing.T) {
	t.Parallel()
	c := proctest.Open(t, nil, underLock("sh", "-c", "echo go; read x; exit 5")...)
	c.See("go")
	c.Keys(proctest.CtrlZ)
	time.Sleep(50 * time.Millisecond)
	c.Keys("\n")
	c.Want(5)
}

const lockLine = `"$SELF" pretend 1m term 1s 1h 0s -- `

func shell(t *testing.T) *proctest.Console {
	t.Helper()
	return proctest.Shell(t, "SELF="+os.Args[0])
}

func TestStopAndForeground(t *testing.T) {
	t.Parallel()
	c := shell(t)
	c.Keys(lockLine + `sh -c 'echo in''side; read x; echo "read $x"; exit 6'` + "\n")
	c.See("inside")
	c.Keys(proctest.CtrlZ)
	c.See("Stopped")
	c.See("ready> ")
	c.Keys("echo shell has the $((1+1))nd terminal\n")
	c.See("the 2nd terminal")
	c.Keys("fg\n")
	time.Sleep(100 * time.Millisecond) // fg writes its line first
	c.Keys("this\n")
	c.See("read this")
	c.See("ready> ")
	c.Keys("echo status=$?\n")
	c.See("status=6")
	c.Keys("exit 0\n")
	c.Want(0)
}

// A job started in the background stops when it reads, and may be brought to the
// foreground.
func TestBackgroundThenForeground(t *testing.T) {
	t.Parallel()
	c := shell(t)
	c.Keys(lockLine + `sh -c 'read x; echo "got $x"' &` + "\n")
	c.See("ready> ")
	for end := time.Now().Add(patience); !strings.Contains(c.Screen(), "Stopped"); {
		if time.Now().After(end) {
			t.Fatalf("not stopped: %q", c.Screen())
		}
		c.Keys("jobs\n")
		time.Sleep(50 * time.Millisecond)
	}
	c.Keys("fg\n")
	time.Sleep(100 * time.Millisecond)
	c.Keys("that\n")
	c.See("got that")
	c.See("ready> ")
	c.Keys("exit 0\n")
	c.Want(0)
}

// In a pipeline the terminal stays with the whole job, until the command reads it;
// an interrupt ends all of it.
func TestPipeline(t *testing.T) {
	t.Parallel()
	c := shell(t)
	c.Keys(lockLine + `sh -c 'read x </dev/tty; echo "got $x"' | cat` + "\n")
	time.Sleep(200 * time.Millisecond)
	c.Keys("this\n")
	c.See("got this")
	c.See("ready> ")
	c.Keys(lockLine + `sh -c 'echo in''side; exec sleep 60' | cat` + "\n")
	c.See("inside")
	c.Keys(proctest.CtrlC)
	c.See("ready> ")
	c.Keys("echo status=${PIPESTATUS[0]} $?\n")
	c.See("status=130")
	c.Keys("exit 0\n")
	c.Want(0)
}

// An interrupt ends the script that the command stands in, as it does without a
// lock; a command that handles it lets the script go on.
func TestInterruptedScript(t *testing.T) {
	t.Parallel()
	c := shell(t)
	for _, x := range []struct{ trap, command, status string }{
		{"", "exec sleep 60", "130"},
		{"trap 'exit 4' INT; ", "while :; do sleep 0.02; done", "0"},
	} {
		script := filepath.Join(t.TempDir(), "script")
		text := lockLine + `sh -c "` + x.trap + `echo in''side; ` + x.command + `"` + "\necho after $?\nexit 0\n"
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.Keys("bash " + script + "\n")
		c.See("inside")
		c.Keys(proctest.CtrlC)
		if x.status == "0" {
			c.See("after 4")
		}
		c.See("ready> ")
		c.Keys("echo status=$?\n")
		c.See("status=" + x.status)
		c.See("ready> ")
	}
}

// The terminal is closed: the command gets SIGHUP and nothing is left.
func TestHangup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := proctest.Open(t, nil, underLock("sh", "-c", "cd "+dir+"; echo $$ >pid; echo go; sleep 60")...)
	c.See("go")
	l := &lock{t: t, dir: dir}
	pid := l.pid("pid")
	c.Close()
	eventually(t, patience, "the command has ended", gone(pid))
}
