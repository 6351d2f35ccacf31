//go:build !race

package transport

import (
	"syscall"
	"unsafe"
)

// call moves bytes between b and a socket that does not block.
func call(trap, fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		k, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if errno == 0 {
			return int(k), 0
		}
		if errno != syscall.EINTR {
			return 0, errno
		}
	}
}
