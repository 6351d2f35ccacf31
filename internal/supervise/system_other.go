//go:build unix && !linux

package supervise

import (
	"os/signal"
	"syscall"
)

// childAttr puts the child in its own process group. This kernel cannot end it
// when the supervisor dies: only the watchdog does.
func childAttr(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// members are not known here: the grace is waited for.
func members(int) (live []int, known bool) { return nil, false }

// marked are not known either.
func marked(string) []int { return nil }

func allVisible() bool { return false }

// stopGroup stops this process's group, though no shell may be there to continue
// it: os/signal does not give the default action of SIGTSTP back.
func stopGroup() (restore func()) {
	syscall.Kill(0, syscall.SIGSTOP)
	return func() {}
}

// holdTTOU calls f with SIGTTOU ignored: a process that is not in the foreground
// may then write to the terminal and change its foreground instead of being
// stopped.
func holdTTOU(f func()) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	f()
}
