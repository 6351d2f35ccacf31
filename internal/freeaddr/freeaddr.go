// Package freeaddr finds addresses of loopback for processes that are started later, and perhaps
// again.
package freeaddr

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Find returns n addresses at which nobody listens. Where all of 127.0.0.0/8 is loopback the
// host is one of 16 million, so that nobody else who looks comes upon the same address meanwhile.
// The port is below those that the kernel gives to connections.
func Find(n int) (addrs []string, err error) {
	for range 100 * n {
		port := 20000 + rand.IntN(10000)
		own := fmt.Sprintf("127.%d.%d.%d:%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254), port)
		for _, addr := range []string{own, fmt.Sprintf("127.0.0.1:%d", port)} {
			var l net.Listener
			if l, err = net.Listen("tcp", addr); err != nil {
				continue
			}
			defer l.Close() // with the others: no address is found twice
			if addrs = append(addrs, addr); len(addrs) == n {
				return addrs, nil
			}
			break
		}
	}
	return nil, fmt.Errorf("no free port of loopback: %w", err)
}
