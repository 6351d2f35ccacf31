package clitest

import (
	"strings"
	"testing"
)

// What the comparison is to notice.
func TestAsSaid(t *testing.T) {
	lines := []string{"s1  127.0.0.1:7001  up  2.3s  18e9afc7569ff038  1", "deploy  mutex  vm/8835  3 of 4", "end"}
	for said, want := range map[string]bool{
		"s1 127.0.0.1:7001 up 100ms 0000000000000000 1\ndeploy mutex box/1 3 of 4\nend": true,
		"...\nend": true,
		"...":      true,
		"s1 127.0.0.1:7001 up 100ms 0000000000000000 1\n...":                            true,
		"s1 127.0.0.1:7001 up 100ms 0000000000000000 1":                                 false,
		"s1 127.0.0.1:7001 up 100ms 0000000000000000 2\n...":                            false,
		"s1 127.0.0.1:7001 up 100ms 0000000000000000 1\ndeploy mutex box/1 4 of 4\nend": false,
		"...\nnext": false,
	} {
		if asSaid(strings.Split(said, "\n"), lines) != want {
			t.Errorf("%q: %v", said, !want)
		}
	}
}
