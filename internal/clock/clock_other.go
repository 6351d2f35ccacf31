//go:build !linux

package clock

import "time"

// read reads a clock that is the same for all processes of the machine, in ns:
// here the wall clock, which must not be set during a run.
func read() int64 { return time.Now().UnixNano() }

// Name tells this clock from those of other machines.
func Name() string { return "wall" }
