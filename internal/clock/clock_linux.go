package clock

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// gettime reads a clock that is the same for all processes of the machine, in ns.
func gettime(id int32) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic("clock: " + err.Error()) // Linux has had these clocks since 2.6.39
	}
	return t.Nano()
}

// read reads a clock that is the same for all processes of the machine, in ns.
func read() int64 { return gettime(unix.CLOCK_MONOTONIC) }

// Boot is the time since the machine booted. Unlike the monotonic clock of package
// time it runs on while the machine is suspended, so that a lease ends then too.
func Boot() time.Duration { return time.Duration(gettime(unix.CLOCK_BOOTTIME)) }

// Shared is an instant that all processes of this machine agree on, and that advances
// while the machine is suspended.
func Shared() time.Duration { return Boot() }

// Name tells this clock from those of other machines, and of other boots.
func Name() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "monotonic"
	}
	return "monotonic since boot " + strings.TrimSpace(string(boot))
}
