package membership

import (
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/centralised"
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
	lacking := []check.Config{{ // who is inside holds up a restart of two phases, and p3 with it
		Config: protocol.Config{N: 3, Options: map[string]int64{phasesOption: 2}}, Crash: 1, Entries: []int{1, 0, 1}, Wants: [][]protocol.Groups{{"1"}},
		Properties: []string{"concurrent-entry"}, Workers: 1,
	}}
	t.Run("suzuki-kasami", func(t *testing.T) {
		algotest.Run(t, Wrap(suzukikasami.Algorithm), algotest.Options{Sizes: sizes, Allocations: 0.01})
	})
	t.Run("tokengme", func(t *testing.T) {
		algotest.Run(t, Wrap(tokengme.Algorithm), algotest.Options{Sizes: sizes, Allocations: 0.25, Lacking: lacking})
	})
	t.Run("tokengme several", func(t *testing.T) {
		lane.CI.Need(t, "the wrapper is the same")
		algotest.Run(t, Wrap(tokengme.Several), algotest.Options{Sizes: sizes, Allocations: 0.25, Lacking: lacking})
	})
	t.Run("tokengme bounded", func(t *testing.T) {
		lane.CI.Need(t, "the wrapper is the same")
		algotest.Run(t, Wrap(tokengme.Bounded), algotest.Options{Sizes: sizes, Allocations: 0.3, Lacking: lacking})
	})
	t.Run("centralised", func(t *testing.T) {
		lane.CI.Need(t, "the wrapper is the same")
		algotest.Run(t, Wrap(centralised.Algorithm), algotest.Options{Sizes: sizes, Allocations: 0.3})
	})
	t.Run("ra2", func(t *testing.T) {
		algotest.Run(t, Wrap(ra2.Algorithm), algotest.Options{Sizes: sizes, Lacking: lacking})
	})
}
