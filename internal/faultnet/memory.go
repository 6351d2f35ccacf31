package faultnet

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// A Memory is a network inside one process, whose connections are net.Pipe, so
// that a test with a virtual clock can run it.
type Memory struct {
	mu        sync.Mutex
	listeners map[string]*memoryListener
}

// Listen listens at an address, any text, that nobody listens at.
func (m *Memory) Listen(addr string) (net.Listener, error) {
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
func (m *Memory) Dial(ctx context.Context, addr string) (net.Conn, error) {
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
