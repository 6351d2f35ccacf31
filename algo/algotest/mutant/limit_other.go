//go:build !unix

package mutant

import (
	"os"
	"time"
)

// limit leaves it to the parent to end this process, by the clock.
func limit(time.Duration) error { return nil }

func overran(*os.ProcessState) bool { return false }
