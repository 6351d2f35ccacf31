package sim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/toys/cells"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

func two(semantics protocol.Semantics) sim.Config {
	return sim.Config{
		Config: protocol.Config{N: 2}, Registers: semantics, Entries: []int{200}, Seed: 7,
		Delay: sim.Exponential(time.Millisecond), Think: sim.Exponential(3 * time.Millisecond),
	}
}

// Toy locks, with the property that each loses.
func TestRegisters(t *testing.T) {
	for _, test := range []struct {
		alg          protocol.Algorithm[struct{}]
		atomic, safe string
	}{
		{cells.Peterson, "", ""},
		{cells.Impolite, "exclusion", "exclusion"},
		{cells.TestAndSet, "exclusion", "exclusion"},
		{cells.Courteous, "stuck", "stuck"},
		{cells.Trusting, "", "exclusion"},
	} {
		for semantics, want := range map[protocol.Semantics]string{protocol.Atomic: test.atomic, protocol.Safe: test.safe} {
			c := two(semantics)
			c.Patience = 100_000
			r := mustRun(t, test.alg, c)
			if want == "" && r.ViolationCount > 0 || want != "" && r.ViolationsOf[want] == 0 {
				t.Errorf("%s, %s: violations %v, want %q", test.alg.Name, semantics, r.ViolationsOf, want)
			}
			if want == "" && (r.Entries != 400 || r.Accesses < 4*400 || r.AccessesPerEntry*400 != float64(r.Accesses)) {
				t.Errorf("%s, %s: %d entries with %d accesses, %v each", test.alg.Name, semantics, r.Entries, r.Accesses, r.AccessesPerEntry)
			}
		}
	}
}

// An access takes one delay, and an await is answered one delay after what it waits for.
func TestAwait(t *testing.T) {
	await := func(p *cells.Process, ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
		switch {
		case ev.Kind == protocol.Start && p.ID == 1:
			out.Await(0, 5)
			out.Read(1)
		case ev.Kind == protocol.Try && p.ID == 0:
			out.Write(0, 7)
		case ev.Kind == protocol.Try, ev.Kind == protocol.Value && p.ID == 0:
			out.Crit(0)
		case ev.Kind == protocol.Exit:
			out.Rem()
		}
	}
	a := cells.Of("await", await, protocol.Register{Name: "a", Owner: 0, Initial: 1, Most: 7},
		protocol.Register{Name: "b", Owner: 1, Most: 7})
	c := sim.Config{Config: protocol.Config{N: 2}, Entries: []int{1}, Think: sim.Constant(10 * time.Millisecond)}
	same(t, trace(t, a, c), `
try p1
at 1ms read p2 b
at 1ms write p1 a
# at 1ms p1 crit
at 2ms read p2 a
at 2ms exit p1
# at 2ms p1 rem
at 5ms try p2
# at 5ms p2 crit
at 6ms exit p2
# at 6ms p2 rem
`)
	// The write is under way from its begin on. What the await finds at its own end is drawn.
	c.Registers = protocol.Safe
	log := trace(t, a, c)
	if !strings.HasPrefix(log, "try p1\nbegin p1 a\nat 1ms read p2 ") || strings.Count(log, "read p2 a") != 1 {
		t.Errorf("safe:\n%s", log)
	}
}

// What breaks a rule of registers is found, and no configuration with faults of messages is
// accepted.
func TestRegisterRules(t *testing.T) {
	for want, on := range map[string]func(out *protocol.Out[struct{}]){
		"p1 accesses register 2 of 0 to 1":            func(out *protocol.Out[struct{}]) { out.Read(2) },
		"p1 writes b, which only p2 writes":           func(out *protocol.Out[struct{}]) { out.Write(1, 1) },
		"p1 accesses a once more before it is done":   func(out *protocol.Out[struct{}]) { out.Write(0, 1); out.Read(0) },
		"p1 sends a message, and its algorithm share": func(out *protocol.Out[struct{}]) { out.Broadcast(struct{}{}) },
	} {
		a := cells.Of("rules", func(p *cells.Process, ev protocol.Event[struct{}], out *protocol.Out[struct{}]) {
			switch ev.Kind {
			case protocol.Start:
				if p.ID == 0 {
					on(out)
				}
			case protocol.Try:
				out.Crit(0)
			case protocol.Exit:
				out.Rem()
			}
		}, protocol.Register{Name: "a", Owner: 0}, protocol.Register{Name: "b", Owner: 1})
		r := mustRun(t, a, two(""))
		if len(r.Violations) == 0 || !strings.Contains(r.Violations[0], want) {
			t.Errorf("violations %q, want %q", r.Violations, want)
		}
	}
	for want, change := range map[string]func(c *sim.Config){
		"loss 0.1: ":              func(c *sim.Config) { c.Loss = 0.1 },
		"dup 0.1: ":               func(c *sim.Config) { c.Dup = 0.1 },
		"FIFO channels: ":         func(c *sim.Config) { c.FIFO = true },
		"memory loss: ":           func(c *sim.Config) { c.AmnesiaEvery = time.Second },
		"a partition: ":           func(c *sim.Config) { c.PartitionEvery = time.Second },
		`registers "regular": `:   func(c *sim.Config) { c.Registers = "regular" },
		"a partition: its proces": func(c *sim.Config) { c.Faults = []scenario.Step{{Verb: scenario.Partition}} },
	} {
		c := two("")
		change(&c)
		if _, err := sim.Run(cells.Peterson, c); !errors.Is(err, sim.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c := two(protocol.Safe)
	if _, err := sim.Run(toys(protocol.Members, grabber(noToken)), c); err == nil || !strings.Contains(err.Error(), "share no memory") {
		t.Errorf("an algorithm without registers: %v", err)
	}
}
