//go:build !linux

package clock

import "time"

// read reads a clock that is the same for all processes of the machine, in ns:
// here the wall clock, which must not be set during a run.
func read() int64 { return time.Now().UnixNano() }

// Boot is the monotonic clock of package time. On systems where that clock stands
// still while the machine is suspended, a client must not be suspended while it holds
// a lock: its lease would seem to go on.
func Boot() time.Duration { return time.Since(start.own) }

// Shared is an instant that all processes of this machine agree on. Only the wall
// clock is known to be shared between processes and to advance in a suspension.
func Shared() time.Duration { return time.Duration(read()) }

// Name tells this clock from those of other machines.
func Name() string { return "wall" }
