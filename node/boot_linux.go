package node

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is the time since the machine booted. Unlike the monotonic clock of
// package time it runs on while the machine is suspended, so that a lease ends
// then too.
func bootTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		// Linux has had this clock since 2.6.39.
		panic("node: no boot clock: " + err.Error())
	}
	return time.Duration(t.Nano())
}
