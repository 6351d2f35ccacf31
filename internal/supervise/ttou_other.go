//go:build unix && !linux

package supervise

import (
	"os/signal"
	"syscall"
)

// holdTTOU calls f with SIGTTOU ignored: a process that is not in the foreground
// may then write to the terminal and change its foreground instead of being
// stopped.
func holdTTOU(f func()) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	f()
}
