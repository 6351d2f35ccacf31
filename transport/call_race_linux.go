//go:build race

package transport

import "syscall"

// call moves bytes between b and a socket that does not block. It announces itself: from
// package syscall the race detector learns that what one end of a connection did before
// it wrote happened before the other end read.
func call(trap, fd uintptr, b []byte) (int, syscall.Errno) {
	move := syscall.Read
	if trap == syscall.SYS_WRITE {
		move = syscall.Write
	}
	for {
		n, err := move(int(fd), b)
		if err == nil {
			return n, 0
		}
		if errno := err.(syscall.Errno); errno != syscall.EINTR {
			return 0, errno
		}
	}
}
