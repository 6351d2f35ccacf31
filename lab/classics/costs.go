package classics

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/sim"
)

// Costs measures each algorithm's costs, and compares them with the formulas that its
// package claims and its source prints.
var Costs = lab.Experiment{
	Name:  "classics/costs",
	Title: "what an entry costs, beside the formulas",
	Plan:  costs,
}

// The loads. Without chance a hop is one constant delay, and costs are exact.
const (
	low    = "low"    // one user at a time, constant delay
	high   = "high"   // all try for ever, constant delay
	random = "random" // the same, and each delay is exponential
	// Where there are clients: the same with as many of them as members.
	crowd       = "crowd"
	crowdRandom = "crowd, random"
)

var loads = []string{low, high, random, crowd, crowdRandom}

// hop is the constant delay, or the mean of the random one.
const hop = time.Millisecond

var measures = lab.Columns(
	"to_enter=to enter", "messages=enter + exit", "accesses", "waiting=hops to enter",
	"sync_delay=sync delay", "integers=ints/message", "jain=Jain", "bypass=max bypass",
)

// measureOf is the name of what a claim bounds.
var measureOf = map[protocol.Measure]string{
	protocol.ToEnter: "to_enter", protocol.Messages: "messages", protocol.Accesses: "accesses",
	protocol.Waiting: "waiting", protocol.SyncDelay: "sync_delay",
}

// sizes are the numbers of processes, projective planes among them.
func sizes(s lab.Scale) []int {
	switch s {
	case lab.Quick:
		return []int{3, 7, 13, 21}
	case lab.Default:
		return []int{3, 4, 5, 6, 7, 8, 9, 10, 13, 16, 21, 25, 31, 40, 49, 57, 73, 91, 100}
	}
	var all []int
	for n := 3; n <= 100; n++ {
		all = append(all, n)
	}
	return all
}

// mostPolling is the largest system in which those who wait look again and again, at each
// other or at registers: what that costs grows with the third power of its size.
const mostPolling = 21

// mostFlooding is the same for clients that ask all servers as long as they wait.
const mostFlooding = 13

// sizes are those at which a form is measured under a load, none if it cannot be.
func (l load) sizes(s lab.Scale) []int {
	i, all := l.entry.Info(), sizes(s)
	if i.Largest > 0 && i.Fit(all[0]) < all[0] {
		all = []int{i.Largest}
	}
	switch {
	case l.crowded() && i.Users != protocol.Clients, l.name != low && !endures(i), !l.crowded() && l.name != low && floods(i):
		return nil
	case l.crowded():
		return slices.DeleteFunc(all, func(n int) bool { return !slices.Contains(planes, n) || floods(i) && n > mostFlooding })
	case l.name != low && (i.Variant == "polling" || i.Registers != nil):
		return slices.DeleteFunc(all, func(n int) bool { return n > mostPolling })
	}
	return all
}

func costs(s lab.Scale) lab.Plan {
	p := lab.Plan{
		Sweep:    "N",
		Labels:   []string{"algorithm", "variant", "load"},
		Measures: measures,
	}
	replications := map[lab.Scale]int{lab.Quick: 3, lab.Default: 5, lab.Full: 10}[s]
	for _, e := range catalog.All {
		i := e.Info()
		recovers := i.Users == protocol.Members && i.Detector == protocol.LeaseDetector
		if i.Users == protocol.Nobody || i.Elector || i.Grouped || i.Weak || recovers || i.Variant == doorways {
			continue // nobody enters, operations, faults or a history cost, too, or the lecture has no groups
		}
		for _, name := range loads {
			l := load{e, name}
			points := l.sizes(s)
			if len(points) == 0 {
				continue
			}
			c := l.configuration(points)
			if l.random() {
				c.Replications = replications
			}
			p.Configurations = append(p.Configurations, c)
		}
	}
	p.Report = reportCosts
	return p
}

// endures reports whether i can be measured where all try for ever: it neither deadlocks
// nor lets two in. What it does instead is shown by Properties.
func endures(i protocol.Info) bool {
	lost := slices.Concat(i.Lacks, i.Refuted)
	return !slices.Contains(lost, "deadlock") && !slices.Contains(lost, "exclusion")
}

// floods reports whether clients of i ask all servers again and again while they wait, as
// those of Sigma as published do.
func floods(i protocol.Info) bool { return i.Name == "sigma" && i.Variant == "literal" }

// A load is one of loads for one form.
type load struct {
	entry catalog.Entry
	name  string
}

func (l load) random() bool  { return l.name == random || l.name == crowdRandom }
func (l load) crowded() bool { return l.name == crowd || l.name == crowdRandom }

// config is the simulation of n members, without its seed. Where there are clients, three of them try.
func (l load) config(n int) sim.Config {
	i := l.entry.Info()
	c := sim.Config{
		Config:   protocol.Config{N: n, Options: unfenced(i)},
		Entries:  []int{20},
		Delay:    sim.Constant(hop),
		Think:    sim.Constant(0),
		Hold:     sim.Constant(hop),
		Patience: 5_000_000,
	}
	if i.Users == protocol.Clients {
		c.Clients = 3
		if l.crowded() {
			c.Clients = n
		}
	}
	if l.name == low {
		// Tries follow each other in more hops than a message goes around and an
		// entry takes.
		apart := time.Duration(10*(n+2)) * hop
		c.Entries, c.Think = []int{5}, sim.Constant(time.Duration(max(n, c.Clients))*apart)
	}
	if l.random() {
		c.Delay = sim.Exponential(hop)
	}
	return c
}

// unfenced turns fencing tokens off: they are no part of what is compared.
func unfenced(i protocol.Info) map[string]int64 {
	if slices.ContainsFunc(i.Options, func(o protocol.Option) bool { return o.Name == "fence" }) {
		return map[string]int64{"fence": 0}
	}
	return nil
}

func (l load) configuration(points []int) lab.Configuration {
	i := l.entry.Info()
	c := lab.Configuration{
		Labels: []string{i.Name, i.Variant, l.name},
		Points: points,
		Setup:  setup(l.config(points[0])),
		Try: func(_ context.Context, n int, seed uint64) (lab.Sample, error) {
			config := l.config(n)
			config.Seed = seed
			return simulate(l.entry, config)
		},
	}
	if !l.random() {
		c.Expect = l.expectations
	}
	return c
}

// setup is what decides a simulation beside its form, its size and its seed.
func setup(c sim.Config) string {
	return fmt.Sprintf("clients=%d entries=%v delay=%v think=%v hold=%v options=%v",
		c.Clients, c.Entries, c.Delay, c.Think, c.Hold, c.Options)
}

func simulate(e catalog.Entry, c sim.Config) (lab.Sample, error) {
	r, err := e.Simulate(c)
	if err := cmp.Or(err, r.Err()); err != nil {
		return lab.Sample{}, err
	}
	values := map[string]float64{
		"waiting": r.Waiting.Mean, "jain": r.Jain, "bypass": float64(r.MaxBypass),
	}
	shared := e.Info().Registers != nil
	if shared {
		values["accesses"] = r.AccessesPerEntry
	} else {
		values["messages"], values["integers"] = r.MessagesPerEntry, r.IntegersPerMessage
	}
	if r.SyncDelay.Count > 0 {
		values["sync_delay"] = r.SyncDelay.Mean
	}
	if c.Think.Mean() > 0 && !shared { // else messages of several tries cross
		values["to_enter"] = r.MessagesToEnter
	}
	return lab.Sample{Values: values}, nil
}

func (l load) expectations(n int) (list []lab.Expectation) {
	of, c := protocol.LowLoad, l.config(n).Config
	if l.name != low {
		of = protocol.HighLoad
	}
	for _, claim := range l.entry.Info().Claims {
		if claim.Load != of {
			continue
		}
		list = append(list, lab.Expectation{
			Measure: measureOf[claim.Measure], Least: claim.Least(c), Most: claim.Most(c),
			Formula: claim.Formula, Published: claim.Published,
		})
	}
	return list
}
