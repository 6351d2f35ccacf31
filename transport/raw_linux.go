package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// maxRaw is how much a system call may move that Go's scheduler does not hear of: it
// takes microseconds.
const maxRaw = 32 << 10

// Raw returns nc with reads and writes of which Go's scheduler does not hear. A socket of
// package net never blocks in one, but it is announced all the same, which in a process
// that was idle wakes the thread that looks for long system calls. That one then looks
// every 20 us or so until the process is idle again: for a process that gets its frames
// one by one that costs more than to handle them.
//
// The price is that this thread may sleep until the next timer of the process is due, and
// preempts nobody before. A node always has one that is due within a second.
//
// What is no socket is returned as it is.
func Raw(nc net.Conn) net.Conn {
	s, ok := nc.(interface {
		halfCloser
		syscall.Conn
	})
	if !ok {
		return nc
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nc
	}
	c := &rawConn{halfCloser: s, raw: raw}
	c.in.move, c.out.move = c.in.read, c.out.write
	return c
}

// A halfCloser can end what it sends and go on to receive.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

type rawConn struct {
	halfCloser
	raw     syscall.RawConn
	in, out direction
}

// A direction is a call of Read or Write, one at a time. It is kept, so that a call needs
// no memory.
type direction struct {
	sync.Mutex
	move  func(fd uintptr) (done bool) // read or write, of this direction
	b     []byte
	n     int // bytes of b that were moved
	errno syscall.Errno
}

// NetConn is the connection below this one.
func (c *rawConn) NetConn() net.Conn { return c.halfCloser }

func (c *rawConn) Read(b []byte) (int, error) {
	if len(b) == 0 || len(b) > maxRaw {
		return c.halfCloser.Read(b)
	}
	n, errno, err := c.in.run(b, c.raw.Read)
	if err == nil && errno == 0 && n == 0 {
		return 0, io.EOF
	}
	return n, c.failed("read", err, errno)
}

func (c *rawConn) Write(b []byte) (int, error) {
	if len(b) == 0 || len(b) > maxRaw {
		return c.halfCloser.Write(b)
	}
	n, errno, err := c.out.run(b, c.raw.Write)
	return n, c.failed("write", err, errno)
}

// run has await call d.move until that is done, each time when the socket may be ready.
func (d *direction) run(b []byte, await func(func(uintptr) bool) error) (int, syscall.Errno, error) {
	d.Lock()
	defer d.Unlock()
	d.b, d.n, d.errno = b, 0, 0
	err := await(d.move)
	d.b = nil
	return d.n, d.errno, err
}

func (d *direction) read(fd uintptr) (done bool) {
	d.n, d.errno = call(syscall.SYS_READ, fd, d.b)
	return d.errno != syscall.EAGAIN
}

func (d *direction) write(fd uintptr) (done bool) {
	for d.n < len(d.b) {
		var k int
		if k, d.errno = call(syscall.SYS_WRITE, fd, d.b[d.n:]); d.errno != 0 {
			break
		}
		d.n += k
	}
	return d.errno != syscall.EAGAIN
}

// failed returns the error that package net would return: err came from waiting, errno
// from the system call after it.
func (c *rawConn) failed(op string, err error, errno syscall.Errno) error {
	if err == nil && errno == 0 {
		return nil
	}
	failure := &net.OpError{
		Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(),
		Err: os.NewSyscallError(op, errno),
	}
	if waiting := (*net.OpError)(nil); errors.As(err, &waiting) {
		failure.Err = waiting.Err
	} else if err != nil {
		failure.Err = err
	}
	return failure
}
