//go:build unix

package node

import (
	"errors"
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
	if err != nil {
		return 0, c.named(err)
	}
	return c.result()
}

// result is that of the last call.
func (c *caller) result() (int, error) {
	switch c.err {
	case nil:
		return c.done, nil
	case syscall.EAGAIN:
		return 0, nil
	}
	return 0, &net.OpError{Op: c.op, Err: os.NewSyscallError(c.op, c.err)}
}

// named is an error of raw, which does not know what it is for.
func (c *caller) named(err error) error {
	if e, ok := err.(*net.OpError); ok {
		e.Op = c.op
	}
	return err
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

// A calm reads from a connection, and knows when it has read all that has come: package net finds that out by one more call, which costs as much as one
// that finds something. An end of the connection that came with the last of it shows only when something else comes, or is written.
type calm struct {
	*caller
	fd  uintptr // while wait runs, else 0
	all bool    // the last call has read all that had come
}

// errNothing: nothing has come.
var errNothing = errors.New("nothing has come")

// newCalm returns nil for a connection that is not the kernel's own.
func newCalm(nc net.Conn) *calm {
	raw := rawOf(nc)
	if raw == nil {
		return nil
	}
	return &calm{caller: newCaller("read", raw.Read, sysRead, true)}
}

// Read implements io.Reader. Within wait it does not wait, but fails with errNothing.
func (c *calm) Read(b []byte) (k int, err error) {
	switch {
	case c.fd == 0:
		k, err = c.do(b)
	case c.all:
		c.all = false
		return 0, errNothing
	default:
		c.bytes = b
		c.try(c.fd)
		c.bytes = nil
		k, err = c.result()
	}
	switch c.all = 0 < k && k < len(b); {
	case k > 0 || err != nil || len(b) == 0:
		return k, err
	case c.err == syscall.EAGAIN:
		return 0, errNothing
	}
	return 0, io.EOF
}

// look has the next Read look whether something has come.
func (c *calm) look() { c.all = false }

// wait calls read at once, and whenever something has come since, until that is done or the connection is closed or its time over. Whatever comes
// while read runs is noticed, which it is not between two calls of Read. To close the connection waits for read.
func (c *calm) wait(read func() (done bool)) error {
	c.all = false
	err := c.raw(func(fd uintptr) bool {
		c.fd = fd
		defer func() { c.fd = 0 }()
		return read()
	})
	if err != nil {
		err = c.named(err)
	}
	return err
}
