package reliable

import (
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/verify/check"
)

// Wrapped, each algorithm conforms as without the wrapper.
func TestConformance(t *testing.T) {
	small := []check.Config{servers(1, 1)} // TestModels has others
	full := lane.Long.Runs()
	t.Run("ricart-agrawala", func(t *testing.T) {
		o := algotest.Options{Sizes: []int{3}, Skip: unfenced()}
		if !full {
			o.Skip["Events"] = "SHORTENED: TEST_LANE=long tries events that are impossible here too"
		}
		algotest.Run(t, Wrap(ricartagrawala.Algorithm), o)
	})
	t.Run("suzuki-kasami", func(t *testing.T) {
		algotest.Run(t, Wrap(suzukikasami.Algorithm), algotest.Options{Sizes: []int{3}, Allocations: 0.01, Skip: unfenced()})
	})
	t.Run("sigma", func(t *testing.T) {
		algotest.Run(t, Wrap(sigma.Algorithm), algotest.Options{Sizes: []int{2}, Exhaustive: small})
	})
	if !full {
		t.Log("SHORTENED: TEST_LANE=long runs the suite with sigma as published too")
		return
	}
	t.Run("literal", func(t *testing.T) {
		algotest.Run(t, Wrap(sigma.Literal), algotest.Options{
			Sizes: []int{2}, Exhaustive: small, Skip: map[string]string{"Allocations": "the wrapper's are those around sigma"},
		})
	})
}

func unfenced() map[string]string {
	return map[string]string{"Fencing": "models with a link are too large, and it takes no part in tokens"}
}

func FuzzFrame(f *testing.F)   { algotest.FuzzRead(f, Wrap(suzukikasami.Algorithm)) }
func FuzzProcess(f *testing.F) { algotest.FuzzLoadState(f, Wrap(sigma.Algorithm)) }
