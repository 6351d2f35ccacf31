//go:build unix

package supervise

import (
	"os"

	"golang.org/x/sys/unix"
)

// A terminal is the controlling terminal of this process. A nil one is none.
type terminal struct {
	fd int
}

// openTerminal returns nil without a controlling terminal.
func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return &terminal{fd: fd}
}

func (t *terminal) close() {
	if t != nil {
		unix.Close(t.fd)
	}
}

// foreground is the process group in the foreground, 0 if that cannot be known.
func (t *terminal) foreground() int {
	if t == nil {
		return 0
	}
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil || group < 0 {
		return 0
	}
	return group
}

// give puts a process group of this session in the foreground. It fails without
// harm when the group has ended or the terminal has hung up.
func (t *terminal) give(group int) {
	if t != nil {
		holdTTOU(func() { unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) })
	}
}

// piped reports whether standard input, output or error is a pipe or a socket:
// then this process is likely part of a pipeline, and other members of it may want
// the terminal (a pager does).
func piped() bool {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		info, err := f.Stat()
		if err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
			return true
		}
	}
	return false
}
