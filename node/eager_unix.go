//go:build unix

package node

import (
	"io"
	"net"
	"os"
	"syscall"
)

// A caller reads from a connection, or writes to it, as package net does but for how it calls the system: see sysRead. One uses it at a time.
type caller struct {
	op    string
	raw   func(try func(fd uintptr) bool) error
	try   func(fd uintptr) bool // made once, so that nothing is allocated
	bytes []byte
	done  int
	err   error
}

// newCaller returns one that waits until a call has done something, or one that does not.
func newCaller(op string, raw func(func(uintptr) bool) error, call func(uintptr, []byte) (int, error), waits bool) *caller {
	c := &caller{op: op, raw: raw}
	c.try = func(fd uintptr) bool {
		for c.done, c.err = call(fd, c.bytes); c.err == syscall.EINTR; {
			c.done, c.err = call(fd, c.bytes)
		}
		return !waits || c.err != syscall.EAGAIN
	}
	return c
}

// do returns how many bytes were read or written. Errors are as package net has them.
func (c *caller) do(b []byte) (int, error) {
	c.bytes = b
	err := c.raw(c.try)
	c.bytes = nil
	switch {
	case err != nil:
		if e, ok := err.(*net.OpError); ok {
			e.Op = c.op
		}
		return 0, err
	case c.err == syscall.EAGAIN:
		return 0, nil
	case c.err != nil:
		return 0, &net.OpError{Op: c.op, Err: os.NewSyscallError(c.op, c.err)}
	}
	return c.done, nil
}

// rawOf returns nil for a connection that is not the kernel's own, such as one with TLS. One that embeds such a connection may
// do more than the kernel with what is written and read.
func rawOf(nc net.Conn) syscall.RawConn {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return nil
	}
	raw, err := nc.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// An eager writes to a connection as much as it takes at once. Its writer must hold conn.writing.
type eager struct{ *caller }

// newEager returns nil where nobody can write without waiting.
func newEager(nc net.Conn) *eager {
	raw := rawOf(nc)
	if raw == nil {
		return nil
	}
	return &eager{newCaller("write", raw.Write, sysWrite, false)}
}

// write returns how many bytes of the frame are written, which may be none.
func (e *eager) write(frame []byte) (int, error) { return e.do(frame) }

// A calm reads from a connection.
type calm struct{ *caller }

// newReader returns what reads from a connection.
func newReader(nc net.Conn) io.Reader {
	raw := rawOf(nc)
	if raw == nil {
		return nc
	}
	return calm{newCaller("read", raw.Read, sysRead, true)}
}

// Read implements io.Reader.
func (c calm) Read(b []byte) (int, error) {
	k, err := c.do(b)
	if k == 0 && err == nil && len(b) > 0 {
		err = io.EOF
	}
	return k, err
}
