package algotest

import (
	"errors"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/algotest/toys/announce"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

// The suite accepts an election, and sees what is wrong with those that make a mistake.
func TestElections(t *testing.T) {
	of := func(m announce.Mistake) protocol.Algorithm[announce.Letter] {
		return announce.Algorithm(m, protocol.UnreliableDetector)
	}
	quiet := Options{Allocations: 0.05, Skip: map[string]string{"Codec": "no letter is ever sent"}}
	Run(t, of(announce.None), quiet)
	for m, want := range map[announce.Mistake]string{
		announce.Reuses: "epochs is violated", announce.Ignores: "agreement is violated", announce.Loops: "termination is violated",
	} {
		o := quiet
		if m == announce.Reuses { // it takes mistakes of the detector
			o.Exhaustive = []check.Config{{Config: protocol.Config{N: 3}, Suspect: 3}}
		}
		if fault, err := Examine(of(m), o)(); err != nil || !strings.Contains(fault, want) {
			t.Errorf("mistake %d: %q, %v; want %s", m, fault, err, want)
		}
	}
}

// What an algorithm says that it lacks need not hold, and is shown to be violated.
func TestLacking(t *testing.T) {
	model := check.Config{Config: protocol.Config{N: 3}, Suspect: 1}
	models := []check.Config{model}
	lacking := func(m announce.Mistake, shown []check.Config, names ...string) (string, error) {
		a := announce.Algorithm(m, protocol.UnreliableDetector)
		a.Lacks = names
		s, err := newSuite(a, Options{Exhaustive: models, Lacking: shown})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []func() error{s.exhaustive, s.lacking} {
			if err := part(); err != nil && !errors.Is(err, errNothing) {
				return err.Error(), nil
			}
		}
		return "", nil
	}
	for _, c := range []struct {
		mistake announce.Mistake
		shown   []check.Config
		lacks   []string
		want    string
	}{
		{announce.None, nil, nil, ""},
		{announce.Ignores, nil, nil, "agreement is violated"},
		{announce.Ignores, models, []string{check.Agreement}, ""},
		{announce.Ignores, nil, []string{check.Agreement}, "lacks agreement, which none of the 0 models"},
		{announce.Ignores, models, []string{check.Agreement, check.OneLeader}, ""},
		{announce.None, models, []string{check.Agreement}, "lacks agreement, which none of the 1 models of Options.Lacking violates"},
		{announce.None, models, []string{"speed"}, `lacks "speed", which is no property`},
	} {
		if fault, err := lacking(c.mistake, c.shown, c.lacks...); err != nil || (fault == "") != (c.want == "") || !strings.Contains(fault, c.want) {
			t.Errorf("mistake %d that lacks %v: %q, %v; want %q", c.mistake, c.lacks, fault, err, c.want)
		}
	}
}
