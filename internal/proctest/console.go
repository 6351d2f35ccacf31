//go:build unix

package proctest

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// A Console is a terminal with a program that leads its session.
type Console struct {
	t     testing.TB
	pty   *os.File
	cmd   *exec.Cmd
	ended chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
}

// Open starts a program on a new terminal, as a terminal emulator does, with more
// in its environment. It is killed when the test ends.
func Open(t testing.TB, env []string, args ...string) *Console {
	t.Helper()
	c := &Console{t: t, cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	c.cmd.Env = append(append(os.Environ(), "PS1=ready> ", "HISTFILE=", "TERM=dumb"), env...)
	var err error
	if c.pty, err = pty.Start(c.cmd); err != nil {
		t.Fatal(err)
	}
	syscall.SetNonblock(int(c.pty.Fd()), true) // so that it can be closed while it is read
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

// Screen is what has come up and was not seen.
func (c *Console) Screen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// See waits for a text and forgets what came up to its end.
func (c *Console) See(text string) {
	c.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
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
			c.t.Fatalf("never saw %q in %q", text, c.Screen())
		}
	}
}

// Keys types a text.
func (c *Console) Keys(text string) {
	c.t.Helper()
	if _, err := c.pty.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

// Want waits for the end of the program, with a status.
func (c *Console) Want(status int) {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(patience):
		c.t.Fatalf("does not end: %q", c.Screen())
	}
	if got := c.cmd.ProcessState.ExitCode(); got != status {
		c.t.Fatalf("status %d, want %d: %q", got, status, c.Screen())
	}
}

// Close hangs up.
func (c *Console) Close() { c.pty.Close() }

// What keys of a terminal send.
const (
	CtrlC = "\x03"
	CtrlZ = "\x1a"
)

// Shell opens a shell with job control, whose prompt is "ready> ". Where there is
// none the test is skipped.
func Shell(t testing.TB, env ...string) *Console {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skipf("needs bash, a shell with job control: %v", err)
	}
	c := Open(t, env, bash, "--norc", "--noprofile", "--noediting", "-i")
	c.See("ready> ")
	return c
}
