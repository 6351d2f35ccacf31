//go:build unix && !linux

package supervise

import "syscall"

// childAttr puts the child in its own process group. This kernel cannot end it
// when the supervisor dies: only the watchdog does.
func childAttr(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
