package proctest

import (
	"testing"

	"github.com/poundlock/poundlock/internal/freeaddr"
)

// FreeAddr returns an address of loopback at which nobody listens, for a process that is
// started later, and perhaps again.
func FreeAddr(t testing.TB) string {
	t.Helper()
	addrs, err := freeaddr.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	return addrs[0]
}
