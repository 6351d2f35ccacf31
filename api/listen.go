package api

import (
	"context"
	"net"
	"sync"
	"time"
)

// silence is how long a peer whose machine or network is gone keeps its
// connections. While a stream is open its session lives.
const silence = 10 * time.Second

// Listen listens for Serve. A connection whose other end vanishes, without closing
// it, is found out within half a minute.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	c := net.ListenConfig{
		Control:         userTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: silence / 4, Count: 4},
	}
	return c.Listen(ctx, "tcp", addr)
}

// limit makes a listener whose connections are no more than n at any time: others
// wait to be accepted.
func limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, open: make(chan struct{}, n), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	open   chan struct{} // has a token for each connection
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &counted{Conn: c, done: func() { <-l.open }}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type counted struct {
	net.Conn
	once sync.Once
	done func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(c.done)
	return c.Conn.Close()
}
