package supervise

import "syscall"

// childAttr puts the child in its own process group. The kernel sends it the
// orphan signal, unless 0, when the supervisor dies: a second line behind the
// watchdog, for the case that both were killed.
func childAttr(orphan syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphan}
}
