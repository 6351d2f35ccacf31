package sim

import (
	"fmt"
	"runtime"
)

// What a run may take of the machine's memory.
const (
	mostState = 4 << 30 // bytes, of what all processes know at first
	manyN     = 2048    // members: with fewer nobody runs out of memory at the start
)

// mostFlight is how many messages may be on their way at a time. Tests make it less.
var mostFlight = 1 << 26

// checkState refuses a run whose processes alone need more memory than a machine may have. What
// New makes for one process is measured.
func checkState(c *Config, create func() any) error {
	if c.N < manyN {
		return nil
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := create()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(p)
	each := after.TotalAlloc - before.TotalAlloc
	if c.FIFO {
		each += 8 * uint64(c.N) // process.last
	}
	if all := each * uint64(c.N); all > mostState {
		return fmt.Errorf("%d members: what they know of each other takes %d MiB, want at most %d: want fewer members",
			c.N, all>>20, mostState>>20)
	}
	return nil
}

// crowded ends a run that has too many messages on their way.
func (s *engine) crowded(messages int) bool {
	if s.refused == nil && max(messages, s.queue.len()) > mostFlight {
		s.dead = true
		s.refused = fmt.Errorf("%w: %s: %d members: more than %d messages are on their way: want fewer members, or users who think longer",
			ErrConfig, s.Info.Name, s.cfg.N, mostFlight)
	}
	return s.refused != nil
}
