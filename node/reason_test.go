package node

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

// A reason names neither addresses nor system calls: who reads it sees the server's beside it.
func TestReason(t *testing.T) {
	addr := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7000}
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for want, err := range map[string]error{
		"connection refused":                 refused,
		"no answer in time":                  &net.OpError{Op: "read", Net: "tcp", Addr: addr, Err: os.ErrDeadlineExceeded},
		"broken pipe":                        &net.OpError{Op: "write", Net: "tcp", Addr: addr, Err: os.NewSyscallError("write", syscall.EPIPE)},
		"remote error: tls: bad certificate": &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")},
		"lookup nohost: no such host":        &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "nohost"}},
		"no answer yet":                      ErrNoAnswer,
		"no connection: connection refused":  &connectionError{refused},
		"no connection: no answer in time":   &connectionError{&silence{context.DeadlineExceeded}},
		"no answer: context canceled":        &silence{context.Canceled},
	} {
		if got := reason(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if !errors.Is(&connectionError{refused}, syscall.ECONNREFUSED) {
		t.Error("the cause is lost")
	}
}
