//go:build unix && !linux

package supervise

import "syscall"

// stopGroup stops this process's group, though no shell may be there to continue
// it: os/signal does not give the default action of SIGTSTP back.
func stopGroup() (restore func()) {
	syscall.Kill(0, syscall.SIGSTOP)
	return func() {}
}
