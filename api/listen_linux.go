package api

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// userTimeout also bounds how long written bytes wait to be acknowledged, which
// keep-alive does not look at. Accepted connections inherit it.
func userTimeout(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(2*silence.Milliseconds()))
	}); e != nil {
		return e
	}
	return err
}
