// Package clock is one that all processes of a machine share.
package clock

import "time"

// start is one instant by both clocks: the machine's and, much cheaper to read, the
// runtime's, which go at the same rate.
var (
	start      = time.Now()
	startClock = read()
)

// Now is an instant in ns that all processes of this machine agree on.
func Now() int64 { return startClock + int64(time.Since(start)) }
