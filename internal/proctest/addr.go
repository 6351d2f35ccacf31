package proctest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// FreeAddr returns an address of loopback at which nobody listens, for a process that is
// started later, and perhaps again. Where all of 127.0.0.0/8 is loopback the host is one
// of 16 million, so that another test, or another checkout of it, does not come upon the
// same address meanwhile. The port is below those that the kernel gives to connections.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(10000)
		own := fmt.Sprintf("127.%d.%d.%d:%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254), port)
		for _, addr := range []string{own, fmt.Sprintf("127.0.0.1:%d", port)} {
			if l, err := net.Listen("tcp", addr); err == nil {
				l.Close()
				return addr
			}
		}
	}
	t.Fatal("no free port")
	return ""
}
