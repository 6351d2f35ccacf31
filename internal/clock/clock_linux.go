package clock

import (
	"os"
	"strings"
	"sync/atomic"
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

// Boot is the time since the machine booted, to within tens of microseconds. Unlike the monotonic clock of package
// time it runs on while the machine is suspended, so that a lease ends then too.
func Boot() time.Duration { return boot.now() }

var boot = seldom{read: func() int64 { return gettime(unix.CLOCK_BOOTTIME) }, own: own}

// own are the clocks of package time, in ns, which cost no system call.
func own() (monotonic, wall int64) {
	t := time.Now()
	return int64(t.Sub(start.own)), t.UnixNano()
}

// A seldom is a clock that takes a system call, read seldom: it goes on from its last reading by the monotonic clock. That one stands still
// while the machine is suspended, and nothing but the wall clock shows it without a system call: the two then differ by more than
// before, as they do when somebody sets the wall clock.
type seldom struct {
	read func() int64
	own  func() (monotonic, wall int64)
	last atomic.Pointer[reading] // nil: none
}

// A reading is one of all three clocks, ns.
type reading struct{ shared, monotonic, wall int64 }

const (
	keepReading = int64(50 * time.Millisecond) // for so long
	sameTime    = int64(20 * time.Microsecond) // that readings of one instant are apart at most
	difference  = int64(time.Millisecond)      // of monotonic and wall clock, that matters
)

func (c *seldom) now() time.Duration {
	monotonic, wall := c.own()
	if x := c.last.Load(); x != nil {
		since := monotonic - x.monotonic
		if apart := wall - x.wall - since; since < keepReading && -difference < apart && apart < difference {
			return time.Duration(x.shared + since)
		}
	}
	shared := c.read()
	if after, _ := c.own(); after-monotonic < sameTime {
		c.last.Store(&reading{shared, monotonic, wall})
	}
	return time.Duration(shared)
}

// Shared is an instant that all processes of this machine agree on, and that advances
// while the machine is suspended.
func Shared() time.Duration { return Boot() }

// Name tells this clock from those of other machines, and of other boots.
func Name() string {
	if id := BootID(); id != "" {
		return "monotonic since boot " + id
	}
	return "monotonic"
}

// BootID is the name of this boot, which no other boot of any machine has; "" where the system does not say.
func BootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
