// Package catalog is the list of all algorithms, message type erased: the only
// package that knows them all.
package catalog

import (
	"slices"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/causal"
	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/hunt"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/sim"
)

// An Entry is one form of one algorithm, with its drivers.
type Entry interface {
	Info() protocol.Info
	// Simulate runs the algorithm in virtual time.
	Simulate(c sim.Config) (sim.Result, error)
	// Simulator returns a function that does the same for many short runs, each in
	// the memory of the one before. It is for one goroutine.
	Simulator() func(sim.Config) (sim.Result, error)
	Check(c check.Config) (check.Verdict, error)
	// Walk begins one run within a model of the checker.
	Walk(c check.Config) (*check.Walk, error)
	// Hunt looks for violations at random.
	Hunt(c hunt.Config) (hunt.Result, error)
	// Host makes the algorithm's processes for a node.
	Host() node.Host
	// Link returns the same algorithm behind package link, which makes channels
	// reliable that lose and repeat messages.
	Link() Entry
}

type entry[M any] struct{ algorithm protocol.Algorithm[M] }

// Of makes the entry of an algorithm.
func Of[M any](a protocol.Algorithm[M]) Entry { return entry[M]{a} }

func (e entry[M]) Info() protocol.Info { return e.algorithm.Info }

func (e entry[M]) Simulate(c sim.Config) (sim.Result, error) { return sim.Run(e.algorithm, c) }

func (e entry[M]) Simulator() func(sim.Config) (sim.Result, error) {
	return sim.NewRunner(e.algorithm).Run
}

func (e entry[M]) Check(c check.Config) (check.Verdict, error) {
	if e.orders(c) {
		return check.Run(causal.Of(e.algorithm), c)
	}
	return check.Run(e.algorithm, c)
}

func (e entry[M]) Walk(c check.Config) (*check.Walk, error) {
	if e.orders(c) {
		return check.NewWalk(causal.Of(e.algorithm), c)
	}
	return check.NewWalk(e.algorithm, c)
}

// orders reports whether causal.Order is to be judged. A property that the algorithm does
// not have is left to the wrapper, too: it refuses any but that one, and names all.
func (e entry[M]) orders(c check.Config) bool {
	if slices.Contains(c.Properties, "all") && e.algorithm.Ordered {
		return true
	}
	return slices.ContainsFunc(c.Properties, func(name string) bool { return name != "all" && !check.Knows(e.algorithm, name) })
}

// ordered reports whether a hunt judges causal.Order, which it does where that is claimed
// and not known to be wrong.
func (e entry[M]) ordered() bool {
	return e.algorithm.Ordered && !slices.Contains(e.algorithm.Refuted, causal.Order)
}

func (e entry[M]) Hunt(c hunt.Config) (hunt.Result, error) {
	if e.ordered() {
		return hunt.Run(causal.Of(e.algorithm), c)
	}
	return hunt.Run(e.algorithm, c)
}

func (e entry[M]) Host() node.Host { return node.HostOf(e.algorithm) }

// All lists every algorithm; an algorithm's default form stands before its
// variants.
var All = []Entry{
	Of(ricartagrawala.Algorithm),
	Of(ricartagrawala.Printed),
	Of(sigma.Algorithm),
	Of(sigma.Literal),
	Of(suzukikasami.Algorithm),
}

// Find returns the form called variant ("" for the default) of the algorithm
// called name, or nil.
func Find(name, variant string) Entry {
	for _, e := range All {
		if i := e.Info(); i.Name == name && i.Variant == variant {
			return e
		}
	}
	return nil
}
