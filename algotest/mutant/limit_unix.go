//go:build unix

package mutant

import (
	"syscall"
	"time"
)

// limit has the kernel kill this process when it has had so much time on processors,
// rounded up to seconds.
func limit(d time.Duration) error {
	seconds := uint64((d + time.Second - 1) / time.Second)
	return syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds})
}
