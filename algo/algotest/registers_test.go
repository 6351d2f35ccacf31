package algotest

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/toys/cells"
	"github.com/poundlock/poundlock/protocol"
)

// Peterson's lock costs four accesses where nobody else wants it, three of them to enter.
func peterson(accesses float64) protocol.Algorithm[struct{}] {
	a := cells.Peterson
	a.Claims = []protocol.Claim{
		protocol.Exactly(protocol.LowLoad, protocol.Accesses, protocol.Fixed(accesses), "4"),
		protocol.Exactly(protocol.LowLoad, protocol.Waiting, protocol.Fixed(3), "3"),
	}
	return a
}

var petersonOptions = Options{Sizes: []int{2}}

// The suite accepts an algorithm that shares memory and sends nothing, and measures its
// accesses.
func TestShared(t *testing.T) {
	Run(t, peterson(4), petersonOptions)
	if fault, err := Examine(peterson(3), petersonOptions)(); err != nil || !strings.Contains(fault, "accesses an entry is 4, claimed 3") {
		t.Errorf("a claim of 3 accesses: %q, %v", fault, err)
	}
	impolite := cells.Impolite
	impolite.Claims = peterson(3).Claims[:1]
	if fault, err := Examine(impolite, petersonOptions)(); err != nil || !strings.Contains(fault, "exclusion") {
		t.Errorf("without the turn: %q, %v", fault, err)
	}
}
