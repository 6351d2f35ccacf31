package supervise

import (
	"time"

	"golang.org/x/sys/unix"
)

// now is an instant that every process of this machine agrees on and that
// advances while the machine is suspended, which Go's monotonic reading does not.
func now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("supervise: clock_gettime: " + err.Error()) // since Linux 2.6.39
	}
	return time.Duration(t.Nano())
}
