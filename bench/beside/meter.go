package main

import (
	"context"
	"net"
	"sync/atomic"
)

// A meter counts the bytes of the connections that a client makes with it.
type meter struct{ bytes atomic.Int64 }

// Traffic implements load.Client.
func (m *meter) Traffic() int64 { return m.bytes.Load() }

func (m *meter) dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return metered{nc, m}, nil
}

type metered struct {
	net.Conn
	m *meter
}

func (c metered) Read(b []byte) (int, error) {
	k, err := c.Conn.Read(b)
	c.m.bytes.Add(int64(k))
	return k, err
}

func (c metered) Write(b []byte) (int, error) {
	k, err := c.Conn.Write(b)
	c.m.bytes.Add(int64(k))
	return k, err
}
