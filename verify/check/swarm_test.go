package check_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/scenario"
)

// A swarm finds violations of every kind, and each trace is a run that a search from
// the beginning takes again, to the same violation.
func TestSwarm(t *testing.T) {
	literal := config(3)
	literal.Clients, literal.Amnesia, literal.Timers = 2, 1, check.NeverFire
	swarmed(t, "exclusion", check.Exclusion, sigma.Literal, literal, true)
	swarmed(t, "tie break", check.Exclusion, withoutTieBreak(), config(3), false)
	swarmed(t, "deadlock", check.Deadlock, algorithm(peers, wait), config(2), true)
	swarmed(t, "model", check.Model, algorithm(peers, func(p *toy, ev protocol.Event[uint8], out *protocol.Out[uint8]) {
		if enter(p, ev, out); ev.Kind == protocol.Exit && p.id == 1 {
			panic("no way out")
		}
	}), config(2), true)
}

func swarmed[M any](t *testing.T, name, property string, a protocol.Algorithm[M], c check.Config, replays bool) {
	t.Helper()
	c.Swarm = &check.Swarm{Bits: 20}
	c.Properties = []string{property}
	v := run(t, a, c)
	if v.Verdict != check.Violated || v.Property != property || v.Searches < 1 {
		t.Errorf("%s: %s, %s", name, v.Verdict, v.Bounds)
		return
	}
	if !replays {
		return
	}
	c.Swarm = nil
	names := scenario.Names{Members: c.N, Clients: a.Users == protocol.Clients}
	var err error
	if c.Prefix, err = names.Parse(strings.NewReader(strings.Join(v.Trace, "\n"))); err != nil {
		t.Fatal(err)
	}
	again := run(t, a, c)
	if again.Verdict != check.Violated || again.Reason != v.Reason || !slices.Equal(again.Trace, v.Trace) {
		t.Errorf("%s: taken again: %s (%s)\n%s\nwant\n%s", name, again.Verdict, again.Reason,
			strings.Join(again.Trace, "\n"), strings.Join(v.Trace, "\n"))
	}
}

// A swarm that finds nothing has decided nothing, and says so; equal seeds of one
// worker visit the same.
func TestSwarmUndecided(t *testing.T) {
	c := config(3)
	c.Workers, c.Swarm = 1, &check.Swarm{Searches: 3, Bits: 18, Seed: 7}
	v := run(t, ricartagrawala.Algorithm, c)
	if v.Verdict != check.Undecided || v.Searches != 3 || v.States < 4000 || !strings.Contains(v.Bounds, "coverage unknown") {
		t.Errorf("%+v", v)
	}
	for _, p := range v.Properties {
		if p.Verdict != check.Undecided {
			t.Errorf("%+v", p)
		}
	}
	again := run(t, ricartagrawala.Algorithm, c)
	again.Seconds, again.StatesPerS, v.Seconds, v.StatesPerS = 0, 0, 0, 0
	if !reflect.DeepEqual(again, v) {
		t.Errorf("equal seeds, but\n%+v\n%+v", v, again)
	}
	c.Swarm = &check.Swarm{Searches: 3, Bits: 18, Seed: 8}
	if other := run(t, ricartagrawala.Algorithm, c); other.Transitions == v.Transitions {
		t.Error("another seed visits the same")
	}
}

// A swarm ends when its time is over, when it is interrupted, and at the memory cap.
func TestSwarmEnds(t *testing.T) {
	a := ricartagrawala.Algorithm
	a.MapState = nil // so that the clocks grow for ever
	done := make(chan struct{})
	close(done)
	for want, change := range map[string]func(*check.Config){
		"share of 50ms": func(c *check.Config) { c.Swarm.For = 50 * time.Millisecond },
		"interrupted":   func(c *check.Config) { c.Done = done },
		"memory cap":    func(c *check.Config) { c.MaxMemory = 2 << 20 },
	} {
		c := config(3)
		c.Entries, c.Workers = []int{check.Unlimited}, 2
		c.Swarm = &check.Swarm{Searches: 2, Bits: 20, Depth: 1 << 20}
		change(&c)
		if v := run(t, a, c); v.Verdict != check.Undecided || !strings.Contains(v.Bounds, want) {
			t.Errorf("%s: %s, %s", want, v.Verdict, v.Bounds)
		}
	}
}

func TestSwarmErrors(t *testing.T) {
	for want, change := range map[string]func(*check.Config){
		"searches -1: want 1 to": func(c *check.Config) { c.Swarm.Searches = -1 },
		"bits 3: want 16 to 40":  func(c *check.Config) { c.Swarm.Bits = 3 },
		"depth -5: want":         func(c *check.Config) { c.Swarm.Depth = -5 },
		"for -1s":                func(c *check.Config) { c.Swarm.For = -time.Second },
		"more than half":         func(c *check.Config) { c.Swarm.Bits = 36 },
		"not whole states":       func(c *check.Config) { c.Exact = true },
	} {
		c := config(2)
		c.Swarm = &check.Swarm{}
		change(&c)
		if _, err := check.Run(algorithm(peers, wait), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
