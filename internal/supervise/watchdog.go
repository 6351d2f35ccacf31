//go:build unix

package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A Watchdog is the supervisor's end of a watchdog process. Start one before
// waiting for the lock, so that the lock is not held while it starts.
type Watchdog struct {
	cmd    *exec.Cmd
	grace  time.Duration
	feed   *os.File
	armed  chan struct{} // closed when it knows the group
	ending chan struct{} // closed when it began to end the group
	exited chan struct{} // closed when it is gone; ending is settled then
}

// StartWatchdog starts a watchdog for a command that will run under the lock
// called name. Close must be called, or Run given it.
func StartWatchdog(name string, action Action, grace time.Duration) (*Watchdog, error) {
	self, err := Self()
	if err != nil {
		return nil, fmt.Errorf("supervise: start the watchdog: %w", err)
	}
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("supervise: start the watchdog: %w", err)
	}
	defer in.Close()
	answers, out, err := os.Pipe()
	if err != nil {
		feed.Close()
		return nil, fmt.Errorf("supervise: start the watchdog: %w", err)
	}
	defer out.Close()
	w := &Watchdog{
		cmd:    exec.Command(self, WatchdogCommand, name, string(action), grace.String()),
		grace:  grace,
		feed:   feed,
		armed:  make(chan struct{}),
		ending: make(chan struct{}),
		exited: make(chan struct{}),
	}
	w.cmd.Args[0] = WatchdogName
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = in, out, os.Stderr
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := w.cmd.Start(); err != nil {
		feed.Close()
		answers.Close()
		return nil, fmt.Errorf("supervise: start the watchdog: %w", err)
	}
	go w.listen(answers)
	return w, nil
}

func (w *Watchdog) listen(answers *os.File) {
	defer close(w.exited)
	defer w.cmd.Wait()
	defer answers.Close()
	for scan := bufio.NewScanner(answers); scan.Scan(); {
		switch scan.Text() {
		case "armed":
			close(w.armed)
		case "ending":
			close(w.ending)
		}
	}
}

// arm tells the watchdog its group and the lease, and returns when it knows them.
func (w *Watchdog) arm(g group, lease, end time.Duration) error {
	if err := w.send("tree %q\ngroup %d %d %d\n", g.tree, g.id, lease, end); err != nil {
		return fmt.Errorf("supervise: arm the watchdog: %w", err)
	}
	select {
	case <-w.armed:
		return nil
	case <-w.exited:
		return errors.New("supervise: the watchdog ended before it was armed")
	case <-time.After(10 * time.Second):
		return errors.New("supervise: the watchdog does not answer")
	}
}

func (w *Watchdog) setEnd(end time.Duration) { w.send("end %d\n", end) }

// send never waits for long: a watchdog that is stopped does not read, and the
// next line says the same and more. Lines are shorter than a pipe's atomic write.
func (w *Watchdog) send(format string, args ...any) error {
	w.feed.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, err := fmt.Fprintf(w.feed, format, args...)
	return err
}

// barked reports whether the watchdog began to end the group. It is certain only
// after Close.
func (w *Watchdog) barked() bool {
	select {
	case <-w.ending:
		return true
	default:
		return false
	}
}

// dead reports whether the watchdog is gone.
func (w *Watchdog) dead() bool {
	select {
	case <-w.exited:
		return true
	default:
		return false
	}
}

// Close says goodbye and waits until the watchdog is gone: at once, or when it has
// ended the group if it had begun to. A nil Watchdog is none.
func (w *Watchdog) Close() {
	if w == nil {
		return
	}
	w.send("bye\n")
	w.feed.Close()
	patience := time.Second
	if w.barked() {
		patience += w.grace
	}
	select {
	case <-w.exited:
	case <-time.After(patience):
		w.cmd.Process.Kill() // somebody stopped it
		<-w.exited
	}
}
