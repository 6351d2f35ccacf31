//go:build unix

package supervise

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	news   news          // that were sent last, but for a farewell
	will   []byte        // the last farewell
	armed  chan struct{} // closed when it knows the group
	ending chan struct{} // closed when it began to end the group
	exited chan struct{} // closed when it is gone; ending is settled then
}

// StartWatchdog starts a watchdog for a command that will run under the lock
// called name. Close must be called, or Run given it.
func StartWatchdog(name string, action Action, grace time.Duration) (*Watchdog, error) {
	w := &Watchdog{grace: grace, armed: make(chan struct{}), ending: make(chan struct{}), exited: make(chan struct{})}
	if err := w.start(name, string(action), grace.String()); err != nil {
		return nil, fmt.Errorf("supervise: start the watchdog: %w", err)
	}
	return w, nil
}

func (w *Watchdog) start(args ...string) error {
	self, err := Self()
	if err != nil {
		return err
	}
	in, feed, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	w.feed = feed
	w.cmd = exec.Command(self, append([]string{WatchdogCommand}, args...)...)
	w.cmd.Args[0] = WatchdogName
	w.cmd.Stdin, w.cmd.Stderr = in, os.Stderr
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	answers, err := w.cmd.StdoutPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		feed.Close()
		return err
	}
	go w.listen(answers)
	return nil
}

func (w *Watchdog) listen(answers io.Reader) {
	defer close(w.exited)
	defer w.cmd.Wait()
	for scan := bufio.NewScanner(answers); scan.Scan(); {
		switch scan.Text() {
		case "armed":
			close(w.armed)
		case "ending":
			close(w.ending)
		}
	}
}

// SetFarewell tells the watchdog what its program needs to say good-bye to those that keep the lock, for a supervisor that was
// killed: JSON, which is handed to the farewell of Watch when nothing of the command is left. It travels by the pipe, where no other
// user sees it. Call it before Run, again when it has changed. An empty one is none. A watchdog that cannot be told, because it has
// ended as it began, cannot be armed either, and Run says so.
func (w *Watchdog) SetFarewell(will []byte) {
	if w == nil || len(will) == 0 || bytes.Equal(will, w.will) {
		return
	}
	w.will = will
	// A long one is read while it is written.
	w.feed.SetWriteDeadline(time.Now().Add(armTime))
	_ = json.NewEncoder(w.feed).Encode(news{Farewell: will, Supervisor: os.Getpid()})
}

// arm tells the watchdog its group and the lease, and returns when it knows them.
func (w *Watchdog) arm(g group, lease, end time.Duration) error {
	w.news = news{Group: g.id, Tree: g.tree, Mark: g.mark, Lease: lease, End: end}
	if err := w.send(armTime); err != nil {
		return fmt.Errorf("supervise: arm the watchdog: %w", err)
	}
	select {
	case <-w.armed:
		return nil
	case <-w.exited:
		return errors.New("supervise: the watchdog ended before it was armed")
	case <-time.After(armTime):
		return errors.New("supervise: the watchdog does not answer")
	}
}

// armTime is how long a watchdog may take to begin.
const armTime = 10 * time.Second

func (w *Watchdog) setEnd(end time.Duration) {
	w.news.End = end
	w.send(shortly)
}

// shortly is how long news may wait for a watchdog that is stopped and does not read: the next ones say the same and more.
const shortly = 100 * time.Millisecond

// send waits for no longer than it is told. The news are shorter than a pipe's atomic write.
func (w *Watchdog) send(patience time.Duration) error {
	w.feed.SetWriteDeadline(time.Now().Add(patience))
	return json.NewEncoder(w.feed).Encode(w.news)
}

// barked reports whether the watchdog began to end the group. It is certain only
// after Close.
func (w *Watchdog) barked() bool { return isClosed(w.ending) }

// dead reports whether the watchdog is gone.
func (w *Watchdog) dead() bool { return isClosed(w.exited) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
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
	w.news.Bye = true
	w.send(shortly)
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
