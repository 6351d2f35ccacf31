//go:build unix

package supervise

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// A child is the leader of the command's process group: a gate at first, then the
// command.
type child struct {
	pid    int
	gate   *os.File                // to open it; closed unopened, the gate ends
	events chan syscall.WaitStatus // stops, and at last its end
}

// startChild starts a gate. With a terminal it is in its foreground.
func startChild(args, env []string, tty *terminal, orphan syscall.Signal) (*child, error) {
	self, err := Self()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &child{gate: w, events: make(chan syscall.WaitStatus)}
	started := make(chan error)
	go func() {
		// The kernel sends the orphan signal when the thread ends that started the
		// child: this one stays until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.fork(self, args, env, tty, orphan, r)
		r.Close()
		started <- err
		if err == nil {
			c.wait()
		}
	}()
	if err := <-started; err != nil {
		w.Close()
		return nil, err
	}
	return c, nil
}

// fork hands the gate its pipe under the number that it has here, so that the
// command finds every descriptor that it was given under its own number.
func (c *child) fork(self string, args, env []string, tty *terminal, orphan syscall.Signal, r *os.File) error {
	attr := &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{0, 1, 2},
		Sys:   childAttr(orphan),
	}
	if tty != nil {
		attr.Sys.Foreground, attr.Sys.Ctty = true, tty.fd
	}
	fd, err := inheritable(r)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	argv := append([]string{os.Args[0], GateCommand, strconv.Itoa(fd)}, args...)
	c.pid, err = syscall.ForkExec(self, argv, attr)
	if err != nil && tty != nil { // the terminal hung up
		attr.Sys.Foreground, attr.Sys.Ctty = false, 0
		c.pid, err = syscall.ForkExec(self, argv, attr)
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", self, err)
	}
	return nil
}

// inheritable duplicates a file to a descriptor that started processes inherit.
func inheritable(f *os.File) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	fd := -1
	if e := raw.Control(func(old uintptr) { fd, err = syscall.Dup(int(old)) }); e != nil {
		err = e
	}
	if err == nil {
		err = syscall.SetNonblock(fd, false) // shared with f, which is not read here
	}
	return fd, err
}

func (c *child) wait() {
	defer close(c.events)
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.pid, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return // nobody else waits for it, so this does not happen
		}
		c.events <- status
		if !status.Stopped() {
			return
		}
	}
}

// open lets the command run, unless the lease has ended by then.
func (c *child) open(leaseEnd time.Duration) error {
	defer c.gate.Close()
	return openGate(c.gate, leaseEnd)
}
