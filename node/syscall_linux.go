//go:build (amd64 || arm64) && !race

package node

import (
	"syscall"
	"unsafe"
)

// sysWrite and sysRead are for sockets, and do not wait. The runtime is not told of the call, for which there is no need: it takes no time
// in which somebody else could run. Otherwise the first call of a process that was idle wakes the thread that watches over system calls (sysmon), which
// then looks around every 20 us until all is idle again. A server with little to do spends a third of its processor time so.
//
// That thread also interrupts goroutines that calculate for long, such as somebody who is granted a lock. It wakes in any case for the timer that was the
// next one when it went to sleep: at a server within a second, and wherever somebody holds leases within a tenth (naps).

func sysWrite(fd uintptr, b []byte) (int, error) {
	return rawCall(syscall.SYS_SENDTO, fd, b, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
}

func sysRead(fd uintptr, b []byte) (int, error) {
	return rawCall(syscall.SYS_RECVFROM, fd, b, syscall.MSG_DONTWAIT)
}

func rawCall(number, fd uintptr, b []byte, flags uintptr) (int, error) {
	k, _, errno := syscall.RawSyscall6(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(k), nil
}
