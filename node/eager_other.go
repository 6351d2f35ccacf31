//go:build !unix

package node

import (
	"errors"
	"io"
	"net"
)

// An eager writes to a connection as much as it takes at once. Here none can.
type eager struct{}

func newEager(net.Conn) *eager { return nil }

func (e *eager) write([]byte) (int, error) { return 0, nil }

// A calm knows when it has read all that has come. Here none does.
type calm struct{ io.Reader }

var errNothing = errors.New("nothing has come")

func newCalm(net.Conn) *calm { return nil }

func (c *calm) look() {}

func (c *calm) wait(func() bool) error { return nil }
