//go:build unix

package node

import (
	"net"
	"syscall"
)

// An eager writes to a connection as much as it takes at once. Its writer must hold conn.writing.
type eager struct {
	raw   syscall.RawConn
	try   func(fd uintptr) bool // made once, so that nothing is allocated
	frame []byte
	wrote int
	err   error
}

// newEager returns nil for a connection that is not the kernel's own, such as one with TLS. One that embeds such a connection may
// do more than the kernel with what is written.
func newEager(nc net.Conn) *eager {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return nil
	}
	raw, err := nc.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil
	}
	e := &eager{raw: raw}
	e.try = func(fd uintptr) bool {
		for e.wrote, e.err = syscall.Write(int(fd), e.frame); e.err == syscall.EINTR; {
			e.wrote, e.err = syscall.Write(int(fd), e.frame)
		}
		return true // it does not wait until there is room
	}
	return e
}

// write returns how many bytes of the frame are written, which may be none.
func (e *eager) write(frame []byte) (int, error) {
	e.frame = frame
	err := e.raw.Write(e.try)
	e.frame = nil
	switch {
	case err != nil:
		return 0, err
	case e.err == syscall.EAGAIN:
		return 0, nil
	case e.err != nil:
		return 0, e.err
	}
	return e.wrote, nil
}
