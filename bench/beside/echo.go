package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/slots"
)

// echoFrame is how many bytes poundlock's client sends to each server that it asks, in the mean, for an
// acquire and release in a loop, and as many as it gets: the table prints both. They are one
// frame each way, because a release goes with the request that follows. The echo goes to all four, while
// poundlock's client asks three where they are busy.
const echoFrame = 60

// serveEcho sends back what comes. A goroutine serves a connection.
func serveEcho(args []string) error {
	config, err := serverArgs(args)
	if err != nil {
		return err
	}
	for _, s := range config.Servers {
		if s.Name == config.Name {
			return listenEcho(s.Addr)
		}
	}
	return fmt.Errorf("server %q is not in the table", config.Name)
}

func listenEcho(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	for {
		nc, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer nc.Close()
			b := make([]byte, 4<<10)
			for {
				k, err := nc.Read(b)
				if err == nil {
					_, err = nc.Write(b[:k])
				}
				if err != nil {
					return
				}
			}
		}()
	}
}

// An echoUser has a connection to each server, and is for one user. A goroutine reads each
// connection: a client that goes on without the slowest server needs that.
type echoUser struct {
	*meter
	conns []net.Conn
	frame [echoFrame]byte
	back  chan error // for each frame; a connection that ends sends its error
}

func openEcho(ctx context.Context, table string) (load.Client, error) {
	servers, err := slots.Parse(table)
	if err != nil {
		return nil, err
	}
	e := &echoUser{meter: &meter{}, back: make(chan error, 2*len(servers))}
	for _, s := range servers {
		nc, err := e.dial(ctx, s.Addr)
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
		e.conns = append(e.conns, nc)
		go func() {
			var b [echoFrame]byte
			for err := error(nil); err == nil; {
				_, err = io.ReadFull(nc, b[:])
				e.back <- err
			}
		}()
	}
	return e, nil
}

// Lock sends a frame to each server and waits until all are back.
func (e *echoUser) Lock(context.Context, string) (load.Held, error) {
	for _, nc := range e.conns {
		if _, err := nc.Write(e.frame[:]); err != nil {
			return load.Held{}, err
		}
	}
	for range e.conns {
		if err := <-e.back; err != nil {
			return load.Held{}, err
		}
	}
	return load.Held{Unlock: func() error { return nil }}, nil
}

func (e *echoUser) Close() error {
	var err error
	for _, nc := range e.conns {
		err = errors.Join(err, nc.Close())
	}
	return err
}
