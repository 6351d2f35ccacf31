package faultnet

import (
	"syscall"
	"time"
)

// Sleep is time.Sleep, which the runtime rounds up to milliseconds where nothing else is to be done: for a delay that
// others measure it is too coarse.
func Sleep(d time.Duration) {
	for end := time.Now().Add(d); d > 0; d = time.Until(end) { // a signal ends a sleep early
		t := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&t, nil)
	}
}
