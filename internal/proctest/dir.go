package proctest

import (
	"os"
	"testing"
)

// SocketDir is a temporary directory whose path is short enough for unix sockets,
// whatever the name of the test. It goes when the test ends.
func SocketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
