package wme

import (
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

func TestConformance(t *testing.T) {
	for _, form := range forms {
		t.Run(form.Name, func(t *testing.T) {
			algotest.Run(t, form, algotest.Options{
				Exhaustive: []check.Config{{Config: protocol.Config{N: 2}, Entries: []int{2, 1}, Suspect: 1, Properties: []string{"all"}}},
			})
		})
	}
}

func FuzzRead(f *testing.F)      { algotest.FuzzRead(f, Second) }
func FuzzLoadState(f *testing.F) { algotest.FuzzLoadState(f, Second) }
