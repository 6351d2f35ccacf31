package node

import (
	"syscall"
	"unsafe"
)

// sysWrite and sysRead are for descriptors that do not block. The runtime is not told of the call, for which there is no need: it takes no time
// in which somebody else could run. Otherwise the first call of a process that was idle wakes the thread that watches over system calls (sysmon), which
// then looks around every 20 us until all is idle again. A server with little to do spends a third of its processor time so.
//
// That thread also interrupts goroutines that calculate for long. It wakes for the next timer in any case, and who has a session
// has a timer for each heartbeat.

func sysWrite(fd uintptr, b []byte) (int, error) { return rawCall(syscall.SYS_WRITE, fd, b) }

func sysRead(fd uintptr, b []byte) (int, error) { return rawCall(syscall.SYS_READ, fd, b) }

func rawCall(number, fd uintptr, b []byte) (int, error) {
	k, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(k), nil
}
