//go:build !unix

package node

import (
	"io"
	"net"
)

// An eager writes to a connection as much as it takes at once. Here none can.
type eager struct{}

func newEager(net.Conn) *eager { return nil }

func (e *eager) write([]byte) (int, error) { return 0, nil }

// newReader returns what reads from a connection.
func newReader(nc net.Conn) io.Reader { return nc }
