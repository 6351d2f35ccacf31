package transport

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// A Memory is a network inside one process, for tests: its connections are
// net.Pipe, so that a test with a virtual clock can run it.
type Memory struct {
	mu        sync.Mutex
	listeners map[string]*memoryListener
}

// Listen listens at an address, any text, that nobody listens at.
func (m *Memory) Listen(addr string) (net.Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.listeners[addr] != nil {
		return nil, fmt.Errorf("transport: address %q is in use", addr)
	}
	if m.listeners == nil {
		m.listeners = map[string]*memoryListener{}
	}
	l := &memoryListener{m: m, addr: memoryAddr(addr), conns: make(chan net.Conn), done: make(chan struct{})}
	m.listeners[addr] = l
	return l, nil
}

// Dial connects to the listener at addr.
func (m *Memory) Dial(ctx context.Context, addr string) (net.Conn, error) {
	m.mu.Lock()
	l := m.listeners[addr]
	m.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("transport: nobody listens at %q", addr)
	}
	here, there := net.Pipe()
	var err error
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
		err = net.ErrClosed
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	here.Close()
	return nil, fmt.Errorf("transport: dial %q: %w", addr, err)
}

type memoryListener struct {
	m     *Memory
	addr  memoryAddr
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() {
		l.m.mu.Lock()
		delete(l.m.listeners, string(l.addr))
		l.m.mu.Unlock()
		close(l.done)
	})
	return nil
}

func (l *memoryListener) Addr() net.Addr { return l.addr }

type memoryAddr string

func (memoryAddr) Network() string  { return "memory" }
func (a memoryAddr) String() string { return string(a) }
