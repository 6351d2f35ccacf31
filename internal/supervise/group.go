//go:build unix

package supervise

import (
	"syscall"
	"time"
)

// endGroup ends a process group: with SIGTERM if there is a grace, and with
// SIGKILL those that live on after it. It returns when the group has ended, or
// soon after the kernel was told to end it.
func endGroup(group int, grace time.Duration) {
	if grace > 0 {
		signalGroup(group, syscall.SIGTERM)
		signalGroup(group, syscall.SIGCONT) // a stopped process cannot obey
		// To look at all processes of a busy machine may take longer than is left.
		onTime := time.AfterFunc(grace, func() { signalGroup(group, syscall.SIGKILL) })
		ended := awaitGroup(group, grace)
		onTime.Stop()
		if ended {
			return
		}
	}
	signalGroup(group, syscall.SIGKILL)
	awaitGroup(group, time.Second)
}

// awaitGroup reports whether the group has ended within a time.
func awaitGroup(group int, limit time.Duration) bool {
	until := now() + limit
	for pause := time.Millisecond; groupAlive(group); pause = min(2*pause, 100*time.Millisecond) {
		if now() >= until {
			return false
		}
		time.Sleep(min(pause, until-now()))
	}
	return true
}

// signalGroup is without effect on a group that has ended.
func signalGroup(group int, s syscall.Signal) { syscall.Kill(-group, s) }

// groupAlive reports whether a group has a process that can still do something.
func groupAlive(group int) bool {
	return syscall.Kill(-group, 0) != syscall.ESRCH && !onlyZombies(group)
}
