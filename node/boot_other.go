//go:build !linux

package node

import "time"

var processStart = time.Now()

// bootTime is the monotonic clock of package time. On systems where that clock
// stands still while the machine is suspended, a client must not be suspended
// while it holds a lock: its lease would seem to go on.
func bootTime() time.Duration { return time.Since(processStart) }
