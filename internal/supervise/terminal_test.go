//go:build unix

package supervise

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// A console is a terminal with a program that leads its session.
type console struct {
	t     *testing.T
	pty   *os.File
	cmd   *exec.Cmd
	ended chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
}

// open starts a program on a new terminal, as a terminal emulator does.
func open(t *testing.T, args ...string) *console {
	t.Helper()
	c := &console{t: t, cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), "SELF="+os.Args[0], "PS1=ready> ", "HISTFILE=", "TERM=dumb")
	master, err := pty.Start(c.cmd)
	if err != nil {
		t.Fatal(err)
	}
	// A file that can be closed while it is read.
	fd, err := syscall.Dup(int(master.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	master.Close()
	syscall.CloseOnExec(fd)
	syscall.SetNonblock(fd, true)
	c.pty = os.NewFile(uintptr(fd), "terminal")
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := c.pty.Read(b)
			c.mu.Lock()
			c.text.Write(b[:n])
			c.mu.Unlock()
			if err != nil { // the last process that has the terminal has closed it
				break
			}
		}
		c.cmd.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		c.cmd.Process.Kill()
		c.pty.Close() // hangs up: what is left on the terminal ends
		<-c.ended
	})
	return c
}

func (c *console) screen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// see waits for a text and forgets what came up to its end.
func (c *console) see(text string) {
	c.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		c.mu.Lock()
		i := bytes.Index(c.text.Bytes(), []byte(text))
		if i >= 0 {
			c.text.Next(i + len(text))
		}
		c.mu.Unlock()
		if i >= 0 {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("never saw %q in %q", text, c.screen())
		}
	}
}

func (c *console) keys(text string) {
	c.t.Helper()
	if _, err := c.pty.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

func (c *console) want(status int) {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
		c.t.Fatalf("does not end: %q", c.screen())
	}
	if got := c.cmd.ProcessState.ExitCode(); got != status {
		c.t.Fatalf("status %d, want %d: %q", got, status, c.screen())
	}
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// underLock is a pretended lock before a command, for a program that leads its session.
func underLock(command ...string) []string {
	return append([]string{os.Args[0], "pretend", "1m", "term", "1s", "1h", "0s", "--"}, command...)
}

func TestInteractiveRead(t *testing.T) {
	t.Parallel()
	c := open(t, underLock("sh", "-c", `echo who; read x; echo "hello, $x"`)...)
	c.see("who")
	c.keys("you\n")
	c.see("hello, you")
	c.want(0)
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	c := open(t, underLock("sh", "-c", "echo go; exec sleep 60")...)
	c.see("go")
	c.keys(ctrlC)
	c.want(130)
}

// A command may handle the interrupt itself: nobody else got it.
func TestInterruptHandled(t *testing.T) {
	t.Parallel()
	c := open(t, underLock("sh", "-c", "trap 'echo got it; exit 3' INT; echo go; while :; do sleep 0.02; done")...)
	c.see("go")
	c.keys(ctrlC)
	c.see("got it")
	c.want(3)
}

func TestCommandLeadsTheForeground(t *testing.T) {
	t.Parallel()
	// PID, group and foreground group are fields 1, 5 and 8.
	c := open(t, underLock("sh", "-c", `set -- $(cat /proc/$$/stat); echo $(($1 == $5)) $(($5 == $8))`)...)
	c.see("1 1")
	c.want(0)
}

// Nobody could continue a group without a shell: ^Z must not hang it.
func TestStopWithoutShell(t *testing.T) {
	t.Parallel()
	c := open(t, underLock("sh", "-c", "echo go; read x; exit 5")...)
	c.see("go")
	c.keys(ctrlZ)
	time.Sleep(50 * time.Millisecond)
	c.keys("\n")
	c.want(5)
}

const lockLine = `"$SELF" pretend 1m term 1s 1h 0s -- `

// shell opens a shell with job control.
func shell(t *testing.T) *console {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skipf("needs bash, a shell with job control: %v", err)
	}
	c := open(t, bash, "--norc", "--noprofile", "--noediting", "-i")
	c.see("ready> ")
	return c
}

func TestStopAndForeground(t *testing.T) {
	t.Parallel()
	c := shell(t)
	c.keys(lockLine + `sh -c 'echo in''side; read x; echo "read $x"; exit 6'` + "\n")
	c.see("inside")
	c.keys(ctrlZ)
	c.see("Stopped")
	c.see("ready> ")
	c.keys("echo shell has the $((1+1))nd terminal\n")
	c.see("the 2nd terminal")
	c.keys("fg\n")
	time.Sleep(100 * time.Millisecond) // fg writes its line first
	c.keys("this\n")
	c.see("read this")
	c.see("ready> ")
	c.keys("echo status=$?\n")
	c.see("status=6")
	c.keys("exit 0\n")
	c.want(0)
}

// A job started in the background stops when it reads, and may be brought to the
// foreground.
func TestBackgroundThenForeground(t *testing.T) {
	t.Parallel()
	c := shell(t)
	c.keys(lockLine + `sh -c 'read x; echo "got $x"' &` + "\n")
	c.see("ready> ")
	for end := time.Now().Add(5 * time.Second); !strings.Contains(c.screen(), "Stopped"); {
		if time.Now().After(end) {
			t.Fatalf("not stopped: %q", c.screen())
		}
		c.keys("jobs\n")
		time.Sleep(50 * time.Millisecond)
	}
	c.keys("fg\n")
	time.Sleep(100 * time.Millisecond)
	c.keys("that\n")
	c.see("got that")
	c.see("ready> ")
	c.keys("exit 0\n")
	c.want(0)
}

// In a pipeline the terminal stays with the whole job, until the command reads it;
// an interrupt ends all of it.
func TestPipeline(t *testing.T) {
	t.Parallel()
	c := shell(t)
	c.keys(lockLine + `sh -c 'read x </dev/tty; echo "got $x"' | cat` + "\n")
	time.Sleep(200 * time.Millisecond)
	c.keys("this\n")
	c.see("got this")
	c.see("ready> ")
	c.keys(lockLine + `sh -c 'echo in''side; exec sleep 60' | cat` + "\n")
	c.see("inside")
	c.keys(ctrlC)
	c.see("ready> ")
	c.keys("echo status=${PIPESTATUS[0]} $?\n")
	c.see("status=130")
	c.keys("exit 0\n")
	c.want(0)
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
		c.keys("bash " + script + "\n")
		c.see("inside")
		c.keys(ctrlC)
		if x.status == "0" {
			c.see("after 4")
		}
		c.see("ready> ")
		c.keys("echo status=$?\n")
		c.see("status=" + x.status)
		c.see("ready> ")
	}
}

// The terminal is closed: the command gets SIGHUP and nothing is left.
func TestHangup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := open(t, underLock("sh", "-c", "cd "+dir+"; echo $$ >pid; echo go; sleep 60")...)
	c.see("go")
	l := &lock{t: t, dir: dir}
	pid := l.pid("pid")
	c.pty.Close()
	eventually(t, 5*time.Second, "the command has ended", gone(pid))
}
