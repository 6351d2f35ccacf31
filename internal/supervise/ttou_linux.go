package supervise

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// holdTTOU calls f with SIGTTOU blocked: a process that is not in the foreground
// may then write to the terminal and change its foreground instead of being
// stopped. Ignoring the signal would do so too, and the command would inherit it.
func holdTTOU(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set, old unix.Sigset_t
	const bits = 8 * int(unsafe.Sizeof(set.Val[0]))
	set.Val[(int(unix.SIGTTOU)-1)/bits] |= 1 << ((int(unix.SIGTTOU) - 1) % bits)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old); err == nil {
		defer unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	}
	f()
}
