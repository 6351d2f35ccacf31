package supervise

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// stopGroup sends SIGTSTP to this process's group, with the signal's default
// action in this process: os/signal keeps the runtime's handler, which does
// nothing, for a signal that it once asked for. The caller calls restore when the
// process was continued.
func stopGroup() (restore func()) {
	// All zeros is the default action, whatever the layout of the structure.
	var action, old [64]byte
	set := func(to, from *[64]byte) {
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGTSTP),
			uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(from)), 8, 0, 0)
	}
	set(&action, &old)
	unix.Kill(0, unix.SIGTSTP)
	return func() { set(&old, nil) }
}
