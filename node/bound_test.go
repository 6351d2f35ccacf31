package node_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/node"
)

// Two ends with different clock bounds both say so, once, and get on with each other.
func TestClockBounds(t *testing.T) {
	host := node.HostOf(keeper(nil))
	var server proctest.Log
	_, peers := clusterAt(t, 1, false, host, func(c *node.Config) {
		c.ClockBound, c.Log = 50*time.Millisecond, slog.New(slog.NewTextHandler(&server, nil))
	})
	for _, test := range []struct {
		bound time.Duration
		warns bool
	}{
		{50 * time.Millisecond, false},
		{0, false}, // of who only asks
		{time.Millisecond, true},
	} {
		var client proctest.Log
		for range 2 {
			clients(t, 1, peers, host, func(c *node.Config) {
				c.ClockBound, c.Log = test.bound, slog.New(slog.NewTextHandler(&client, nil))
			})
		}
		for log, want := range map[*proctest.Log]int{&client: 2, &server: 1} { // by node
			warnings := func() int { return strings.Count(log.String(), "another clock bound") }
			if test.warns { // a little after the connection counts
				eventually(t, "a warning at both ends", func() bool { return warnings() >= want })
			} else {
				want = 0
			}
			text := log.String()
			if got := warnings(); got != want {
				t.Errorf("bound %v: %d warnings, want %d:\n%s", test.bound, got, want, text)
			}
			if test.warns && (!strings.Contains(text, "=1ms") || !strings.Contains(text, "=50ms")) {
				t.Errorf("not both values:\n%s", text)
			}
		}
	}
}
