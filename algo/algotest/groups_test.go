package algotest

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/toys/chamber"
	"github.com/poundlock/poundlock/protocol"
)

// grouped is a form of the chamber with what tables want: a process that is no coordinator sends a
// request, gets a grant and releases it.
func grouped(form chamber.Form) protocol.Algorithm[chamber.Message] {
	a := chamber.Algorithm(form)
	three := func(c protocol.Config) float64 { return 3 * float64(c.N-1) / float64(c.N) }
	a.Claims = []protocol.Claim{
		protocol.Exactly(protocol.LowLoad, protocol.Messages, three, "3(N-1)/N"),
		protocol.Exactly(protocol.HighLoad, protocol.Messages, three, "3(N-1)/N"),
	}
	return a
}

// coarse are the options for the chamber, whose messages are texts.
var coarse = Options{Skip: map[string]string{"Allocations": "its messages are texts"}}

// The suite takes an algorithm with groups, and notices what is wrong with each broken form.
func TestGroups(t *testing.T) {
	Run(t, grouped(chamber.Sound), coarse)
	for form, want := range map[chamber.Form]string{
		chamber.IgnoresGroups: "exclusion",
		chamber.AloneTogether: "exclusion",
		chamber.Unwanted:      "wants",
		chamber.OneByOne:      "concurrent-entry",
	} {
		if fault, err := Examine(grouped(form), coarse)(); err != nil || !strings.Contains(fault, want) {
			t.Errorf("%s: %q, %v, want %q", form, fault, err, want)
		}
	}
}
