//go:build !offsetclock

package e2e

import "testing"

// tags are those that the server is built with.
const tags = ""

func TestClocks(t *testing.T) {
	t.Skip("SKIPPED: wall clocks that are off need a build of their own: go test -tags offsetclock ./internal/e2e -run TestClocks")
}
