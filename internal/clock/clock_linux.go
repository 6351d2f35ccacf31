package clock

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// read reads a clock that is the same for all processes of the machine, in ns.
func read() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("clock: " + err.Error()) // there is no Linux without this clock
	}
	return t.Nano()
}

// Name tells this clock from those of other machines, and of other boots.
func Name() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "monotonic"
	}
	return "monotonic since boot " + strings.TrimSpace(string(boot))
}
