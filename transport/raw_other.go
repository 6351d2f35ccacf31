//go:build !linux

package transport

import "net"

// Raw returns nc: only on Linux is there anything to gain.
func Raw(nc net.Conn) net.Conn { return nc }
