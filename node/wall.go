//go:build !offsetclock

package node

import "time"

// wall is the wall clock of a reading, in ns since 1970.
func wall(t time.Time) int64 { return t.UnixNano() }
