package bench

import "golang.org/x/sys/unix"

// clock reads a clock that is the same for all processes of the machine, in ns.
func clock() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("bench: " + err.Error()) // there is no Linux without this clock
	}
	return t.Nano()
}
