package wme

import (
	"testing"

	"github.com/poundlock/poundlock/algo/algotest"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

func TestConformance(t *testing.T) {
	for _, form := range forms {
		t.Run(form.Name, func(t *testing.T) { algotest.Run(t, form, algotest.Options{Exhaustive: exhaustive}) })
	}
}

var exhaustive = []check.Config{{Config: protocol.Config{N: 2}, Entries: []int{2, 1}, Suspect: 1, Properties: []string{"all"}}}

// What is printed lacks what it is said to lack, though nobody is suspected by mistake.
func TestLiteral(t *testing.T) {
	for _, form := range []protocol.Algorithm[Message]{LiteralFirst, LiteralSecond} {
		t.Run(form.Name, func(t *testing.T) {
			algotest.Run(t, form, algotest.Options{
				Exhaustive: exhaustive,
				Lacking: []check.Config{
					{Config: protocol.Config{N: 2}, Cancel: 1},
					{Config: protocol.Config{N: 3}, Entries: []int{0, 1, 0}, Crash: 1},
				},
				Skip: map[string]string{"Allocations": "its runs soon wait for ever", "Claims": "its runs soon wait for ever"},
			})
		})
	}
}

func FuzzRead(f *testing.F)      { algotest.FuzzRead(f, Second) }
func FuzzLoadState(f *testing.F) { algotest.FuzzLoadState(f, Second) }
