package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/verify/check"
)

func TestSwarmFlags(t *testing.T) {
	for want, f := range map[string]struct {
		swarmFlags
		given []string
	}{
		"--bits is for a swarm: add --swarm": {given: []string{"bits"}},
		"--for is for a swarm":               {given: []string{"for"}},
		"leave out one of them":              {swarmFlags{swarm: true}, []string{"exact"}},
		"--searches -1: want at least 1":     {swarmFlags{true, check.Swarm{Searches: -1}}, nil},
		"--depth 0: want at least 1":         {swarmFlags{true, check.Swarm{Searches: 1, Bits: 20}}, nil},
		"--for 0s: want more than 0":         {swarmFlags{true, check.Swarm{Searches: 1, Bits: 20, Depth: 9}}, []string{"for"}},
		"--for -1s: want more than 0":        {swarmFlags{true, check.Swarm{Searches: 1, Bits: 20, Depth: 9, For: -time.Second}}, nil},
	} {
		_, err := f.config(func(name string) bool { return slices.Contains(f.given, name) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	none := func(string) bool { return false }
	if s, err := (&swarmFlags{Swarm: check.Swarm{Searches: 3}}).config(none); s != nil || err != nil {
		t.Errorf("without --swarm: %+v, %v", s, err)
	}
	f := swarmFlags{true, check.Swarm{Searches: 1, Bits: 20, Depth: 9, For: time.Second, Seed: 5}}
	if s, err := f.config(none); err != nil || *s != (check.Swarm{Searches: 1, Bits: 20, Depth: 9, For: time.Second, Seed: 5}) {
		t.Errorf("%+v, %v", s, err)
	}
}

// Only a search of all states says holds.
func TestVerdictLine(t *testing.T) {
	for want, v := range map[string]check.Verdict{
		"holds: no violation in 1 234 states":     {Verdict: check.Holds, States: 1234},
		"undecided: no violation in 1 234 states": {Verdict: check.Undecided, States: 1234},
		"undecided: no violation found in 1 234 states visited, coverage unknown": {
			Verdict: check.Undecided, States: 1234, Searches: 3,
		},
	} {
		if got := verdictLine(v); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
