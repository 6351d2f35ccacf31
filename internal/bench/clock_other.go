//go:build !linux

package bench

import (
	"time"

	"github.com/poundlock/poundlock/history"
)

// clock reads a clock that is the same for all processes of the machine, in ns:
// here the wall clock, which must not be set during a run.
func clock() int64 { return time.Now().UnixNano() }

func clockName() string { return history.Wall }
