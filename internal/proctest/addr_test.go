package proctest

import (
	"net"
	"testing"
)

func TestFreeAddr(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		addr := FreeAddr(t)
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if seen[addr] {
			t.Errorf("%s came twice", addr)
		}
		seen[addr] = true
	}
}
