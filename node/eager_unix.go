//go:build unix

package node

import (
	"io"
	"net"
	"os"
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

// newEager returns nil where nobody can write without waiting.
func newEager(nc net.Conn) *eager {
	raw := rawOf(nc)
	if raw == nil {
		return nil
	}
	e := &eager{raw: raw}
	e.try = func(fd uintptr) bool {
		for e.wrote, e.err = sysWrite(fd, e.frame); e.err == syscall.EINTR; {
			e.wrote, e.err = sysWrite(fd, e.frame)
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
		return 0, called("write", err)
	case e.err == syscall.EAGAIN:
		return 0, nil
	case e.err != nil:
		return 0, called("write", os.NewSyscallError("write", e.err))
	}
	return e.wrote, nil
}

// called is an error as package net has it for such a call.
func called(op string, err error) error {
	if raw, ok := err.(*net.OpError); ok {
		raw.Op = op
		return raw
	}
	return &net.OpError{Op: op, Err: err}
}

// A calm reads from a connection as package net does, but for how it calls the system: see sysRead.
type calm struct {
	raw  syscall.RawConn
	try  func(fd uintptr) bool // made once, so that nothing is allocated
	into []byte
	read int
	err  error
}

// newReader returns what reads from a connection.
func newReader(nc net.Conn) io.Reader {
	raw := rawOf(nc)
	if raw == nil {
		return nc
	}
	r := &calm{raw: raw}
	r.try = func(fd uintptr) bool {
		for r.read, r.err = sysRead(fd, r.into); r.err == syscall.EINTR; {
			r.read, r.err = sysRead(fd, r.into)
		}
		return r.err != syscall.EAGAIN
	}
	return r
}

// Read implements io.Reader.
func (r *calm) Read(b []byte) (int, error) {
	r.into = b
	err := r.raw.Read(r.try)
	r.into = nil
	switch {
	case err != nil:
		return 0, called("read", err)
	case r.err != nil:
		return 0, called("read", os.NewSyscallError("read", r.err))
	case r.read == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return r.read, nil
}
