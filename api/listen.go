package api

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/poundlock/poundlock/internal/door"
	"github.com/poundlock/poundlock/internal/limit"
	"github.com/poundlock/poundlock/internal/listen"
	"github.com/poundlock/poundlock/transport"
)

// silence is how long a peer whose machine or network is gone keeps its
// connections. While a stream is open its session lives.
const silence = 10 * time.Second

// Listen listens for Serve at HOST:PORT, or at unix:/path, to which this user alone can connect. A connection whose other end vanishes,
// without closing it, is found out within half a minute.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	if _, ok := transport.Unix(addr); ok {
		return listen.At(addr, nil, true)
	}
	c := net.ListenConfig{
		Control:         userTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: silence / 4, Count: 4},
	}
	return c.Listen(ctx, "tcp", addr)
}

// maxRefused is how many connections beyond the limit are told so at once. Others are
// closed without a word.
const maxRefused = 64

// bound makes a listener whose connections are no more than n at any time, by the rules of
// places: those in which no call is in progress are given up first. A few more are accepted
// to be refused, within slow.
func bound(l net.Listener, n int, slow time.Duration) net.Listener {
	return &limited{
		Listener: l, open: newPlaces("connections", n), refused: make(chan struct{}, maxRefused), slow: slow,
	}
}

type limited struct {
	net.Listener
	open    *places
	refused chan struct{} // has a token for each connection that is being refused
	slow    time.Duration
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		k := &counted{Conn: &door.Conn{Conn: c}}
		k.place, k.refusal = l.open.enter(limit.Host(c.RemoteAddr().String()), true, func(error) { c.Close() })
		if k.refusal == nil {
			k.done = func() { k.place.Leave() }
			return k, nil
		}
		select {
		case l.refused <- struct{}{}:
			t := time.AfterFunc(l.slow, func() { k.Close() })
			k.done = func() {
				t.Stop()
				<-l.refused
			}
			return k, nil
		default:
			c.Close()
		}
	}
}

// A counted connection has a place, or is there to be refused.
type counted struct {
	net.Conn
	place   *limit.Guest // nil: none
	refusal error        // nil: it has a place
	once    sync.Once
	done    func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(c.done)
	return c.Conn.Close()
}

// noteState is http.Server.ConnState: a connection without a call is spare.
func noteState(c net.Conn, state http.ConnState) {
	if k := countedOf(c); k != nil && k.place != nil {
		switch state {
		case http.StateActive:
			k.place.SetSpare(false)
		case http.StateIdle:
			k.place.SetSpare(true)
		}
	}
}

// refusalKey is that of the refusal of a connection in the context of its requests.
type refusalKey struct{}

// noteRefusal is http.Server.ConnContext.
func noteRefusal(ctx context.Context, c net.Conn) context.Context {
	if k := countedOf(c); k != nil && k.refusal != nil {
		return context.WithValue(ctx, refusalKey{}, k.refusal)
	}
	return ctx
}

func countedOf(c net.Conn) *counted {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	k, _ := c.(*counted)
	return k
}
