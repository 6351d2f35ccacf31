package membership

import (
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// Wrapped, each algorithm conforms as without the wrapper; what it may allocate is stated.
func TestConformance(t *testing.T) {
	sizes := []int{2, 3, 5}
	if !lane.Long.Runs() {
		sizes = []int{3}
		t.Log("SHORTENED to three processes: TEST_LANE=long runs two and five, too")
	}
	lacking := []check.Config{{ // who is inside holds up a restart, and p3 with it
		Config: protocol.Config{N: 3}, Crash: 1, Entries: []int{1, 0, 1}, Wants: [][]protocol.Groups{{"1"}},
		Properties: []string{"concurrent-entry"}, Workers: 1,
	}}
	t.Run("suzuki-kasami", func(t *testing.T) {
		algotest.Run(t, Wrap(suzukikasami.Algorithm), algotest.Options{Sizes: sizes, Allocations: 0.01})
	})
	t.Run("tokengme", func(t *testing.T) {
		algotest.Run(t, Wrap(tokengme.Algorithm), algotest.Options{Sizes: sizes, Allocations: 0.25, Lacking: lacking})
	})
	t.Run("ra2", func(t *testing.T) {
		algotest.Run(t, Wrap(ra2.Algorithm), algotest.Options{Sizes: sizes, Lacking: lacking})
	})
}
