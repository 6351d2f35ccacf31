package node

import (
	"sync/atomic"
	"time"
)

// A clock is the wall clock made monotone: when the machine's is set back, it
// stands still until it is caught up with.
type clock struct{ last atomic.Int64 }

func (c *clock) now() int64 {
	now := time.Now().UnixNano()
	for {
		last := c.last.Load()
		if now <= last {
			return last
		}
		if c.last.CompareAndSwap(last, now) {
			return now
		}
	}
}
