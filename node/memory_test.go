package node_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// A memory is a network inside one process, whose connections are net.Pipe, so
// that a test with a virtual clock can run it.
type memory struct {
	mu        sync.Mutex
	listeners map[string]*memoryListener
}

// Listen listens at an address, any text, that nobody listens at.
func (m *memory) Listen(addr string) (net.Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.listeners[addr]; l != nil && l.ctx.Err() == nil {
		return nil, fmt.Errorf("memory: address %q is in use", addr)
	}
	if m.listeners == nil {
		m.listeners = map[string]*memoryListener{}
	}
	l := &memoryListener{addr: memoryAddr(addr), conns: make(chan net.Conn)}
	l.ctx, l.close = context.WithCancel(context.Background())
	m.listeners[addr] = l
	return l, nil
}

// Dial connects to the listener at addr.
func (m *memory) Dial(ctx context.Context, addr string) (net.Conn, error) {
	m.mu.Lock()
	l := m.listeners[addr]
	m.mu.Unlock()
	if l == nil || l.ctx.Err() != nil {
		return nil, fmt.Errorf("memory: nobody listens at %q", addr)
	}
	here, there := net.Pipe()
	var err error
	select {
	case l.conns <- there:
		return here, nil
	case <-l.ctx.Done():
		err = net.ErrClosed
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	here.Close()
	return nil, fmt.Errorf("memory: dial %q: %w", addr, err)
}

type memoryListener struct {
	ctx   context.Context // ends when it is closed
	close context.CancelFunc
	addr  memoryAddr
	conns chan net.Conn
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.close()
	return nil
}

func (l *memoryListener) Addr() net.Addr { return l.addr }

type memoryAddr string

func (memoryAddr) Network() string  { return "memory" }
func (a memoryAddr) String() string { return string(a) }

func TestMemory(t *testing.T) {
	var m memory
	l, err := m.Listen("s1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Listen("s1"); err == nil {
		t.Error("two listen at one address")
	}
	go func() {
		there, err := l.Accept()
		if err == nil {
			there.Write([]byte("x"))
		}
	}()
	here, err := m.Dial(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	if _, err := here.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := m.Dial(ctx, "s1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody accepts: %v", err)
	}
	l.Close()
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if _, err := m.Dial(t.Context(), "s1"); err == nil {
		t.Error("dialed a closed listener")
	}
	if l.Addr().Network() != "memory" || l.Addr().String() != "s1" {
		t.Errorf("address %v", l.Addr())
	}
}
