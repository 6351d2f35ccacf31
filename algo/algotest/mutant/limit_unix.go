//go:build unix

package mutant

import (
	"os"
	"syscall"
	"time"
)

// limit has the kernel kill this process when it has had so much time on processors,
// rounded up to seconds.
func limit(d time.Duration) error {
	seconds := uint64((d + time.Second - 1) / time.Second)
	return syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds})
}

// overran reports whether the kernel did so. Its count is not that of p, so that this is
// told by the signal, which nobody else sends.
func overran(p *os.ProcessState) bool {
	s, ok := p.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGKILL
}
