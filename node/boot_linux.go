package node

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bootTime is the time since the machine booted. Unlike the monotonic clock of
// package time it runs on while the machine is suspended, so that a lease ends
// then too. The scheduler does not hear of the system call, for which transport.Raw says
// why: a client reads the clock before each batch of events.
func bootTime() time.Duration {
	var t unix.Timespec
	_, _, err := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&t)), 0)
	if err != 0 {
		// Linux has had this clock since 2.6.39.
		panic("node: no boot clock: " + err.Error())
	}
	return time.Duration(t.Nano())
}
