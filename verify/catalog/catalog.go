// Package catalog is the list of all algorithms, message type erased: the only
// package that knows them all.
package catalog

import (
	"github.com/poundlock/poundlock/algo/bakery"
	"github.com/poundlock/poundlock/algo/bully"
	"github.com/poundlock/poundlock/algo/carvalhoroucairol"
	"github.com/poundlock/poundlock/algo/centralised"
	"github.com/poundlock/poundlock/algo/dijkstra"
	"github.com/poundlock/poundlock/algo/lamport"
	"github.com/poundlock/poundlock/algo/maekawa"
	"github.com/poundlock/poundlock/algo/ra1"
	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/ringelection"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/statemachine"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/algo/tokenring"
	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/hunt"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/consensus"
	"github.com/poundlock/poundlock/wrap/membership"
	"github.com/poundlock/poundlock/wrap/registers"
	"github.com/poundlock/poundlock/wrap/reliable"
	"github.com/poundlock/poundlock/wrap/withleader"
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
	// Link returns the same algorithm behind package reliable, which makes channels
	// reliable that lose and repeat messages.
	Link() Entry
}

// An entry keeps its type of messages where that makes runs faster, and only there: see
// erased.
type entry[M any] struct {
	erased
	typed protocol.Algorithm[M]
}

// Of makes the entry of an algorithm.
func Of[M any](a protocol.Algorithm[M]) Entry { return entry[M]{erased{protocol.Erase(a)}, a} }

// elected makes the entry of an algorithm with an election beside it. All such entries
// share one type of messages.
func elected[M, E any](a protocol.Algorithm[M], election protocol.Algorithm[E]) Entry {
	return Of(withleader.With(protocol.Erase(a), protocol.Erase(election)))
}

// recovering makes the entry of an algorithm behind package membership. All such entries
// share one type of messages, too.
func recovering[M any](a protocol.Algorithm[M]) Entry { return Of(membership.Wrap(protocol.Erase(a))) }

// overPaxos makes the entry of an algorithm that exchanges the messages of its consensus itself.
// All such entries share one type of messages, too.
func overPaxos[M any](a protocol.Algorithm[M]) Entry {
	w := consensus.With(protocol.Erase(a))
	w.Variant, w.Title = "paxos", "the same, with Paxos among its processes in place of a service"
	return Of(w)
}

func (e entry[M]) Simulate(c sim.Config) (sim.Result, error) { return sim.Run(e.typed, c) }

func (e entry[M]) Simulator() func(sim.Config) (sim.Result, error) {
	return sim.NewRunner(e.typed).Run
}

func (e entry[M]) Hunt(c hunt.Config) (hunt.Result, error) {
	if e.ordered() {
		return hunt.Run(causal.Of(e.algorithm), c)
	}
	return hunt.Run(e.typed, c)
}

func (e entry[M]) Host() node.Host { return node.HostOf(e.typed) }

func (e entry[M]) Link() Entry { return linked{e.erased, reliable.Wrap(e.algorithm), e.Host} }

// All lists every algorithm; an algorithm's default form stands before its
// variants.
var All = []Entry{
	Of(bakery.Algorithm),
	Of(bakery.FirstCome),
	Of(registers.OverMessages(bakery.Awaiting, registers.Deferred)),
	Of(registers.OverMessages(bakery.Awaiting, registers.Polling)),
	Of(bully.Algorithm),
	Of(carvalhoroucairol.Algorithm),
	Of(centralised.Algorithm),
	Of(centralised.WithDenied),
	elected(centralised.Successor, bully.Algorithm),
	Of(dijkstra.Algorithm),
	Of(lamport.Algorithm),
	Of(lamport.Unordered),
	Of(maekawa.Basic),
	Of(maekawa.PrintedVote),
	Of(maekawa.Algorithm),
	Of(ra1.Algorithm),
	Of(ra2.Algorithm),
	recovering(ra2.Algorithm),
	Of(ricartagrawala.Algorithm),
	Of(ricartagrawala.Printed),
	Of(ringelection.Algorithm),
	Of(sigma.Algorithm),
	Of(sigma.Literal),
	Of(statemachine.Algorithm),
	Of(statemachine.Announced),
	Of(suzukikasami.Algorithm),
	Of(suzukikasami.RicartAgrawala),
	recovering(suzukikasami.Algorithm),
	Of(tokengme.Algorithm),
	Of(tokengme.Several),
	Of(tokengme.Bounded),
	Of(tokengme.WithClients),
	recovering(tokengme.Algorithm),
	Of(tokenring.Algorithm),
	Of(tokenring.Resting),
	Of(tokenring.Bidirectional),
	elected(tokenring.Regenerating, ringelection.Algorithm),
	elected(tokenring.NoEpoch, ringelection.Algorithm),
	Of(wme.First),
	overPaxos(wme.First),
	Of(wme.Second),
	overPaxos(wme.Second),
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
