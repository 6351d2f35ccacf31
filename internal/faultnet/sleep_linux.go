package faultnet

import (
	"syscall"
	"time"
)

// Sleep is time.Sleep, which the runtime rounds up to milliseconds where nothing else is to be done: for a delay that
// others measure it is too coarse.
func Sleep(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // a signal may end it early, which is no harm
}
