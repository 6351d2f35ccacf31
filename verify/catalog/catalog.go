// Package catalog is the list of all algorithms, message type erased: the only
// package that knows them all.
package catalog

import (
	"context"
	"io"
	"os/exec"

	"github.com/poundlock/poundlock/algo/bakery"
	"github.com/poundlock/poundlock/algo/bully"
	"github.com/poundlock/poundlock/algo/carvalhoroucairol"
	"github.com/poundlock/poundlock/algo/centralised"
	"github.com/poundlock/poundlock/algo/dijkstra"
	"github.com/poundlock/poundlock/algo/lamport"
	"github.com/poundlock/poundlock/algo/maekawa"
	"github.com/poundlock/poundlock/algo/peterson"
	"github.com/poundlock/poundlock/algo/ra1"
	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/raymond"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/ringelection"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/statemachine"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/algo/tokenring"
	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/hunt"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/consensus"
	"github.com/poundlock/poundlock/wrap/membership"
	"github.com/poundlock/poundlock/wrap/registers"
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
	// OnNetwork runs the algorithm with nodes over TCP, in real time.
	OnNetwork(ctx context.Context, c sim.Config) (sim.Result, error)
	// OnProcesses does the same with a program for each process, which calls Process with its standard input and output.
	OnProcesses(ctx context.Context, c sim.Config, program func() *exec.Cmd) (sim.Result, error)
	Process(in io.Reader, out io.Writer) error
	Check(c check.Config) (check.Verdict, error)
	// Walk begins one run within a model of the checker.
	Walk(c check.Config) (*check.Walk, error)
	// Hunt looks for violations at random.
	Hunt(c hunt.Config) (hunt.Result, error)
	// Link returns the same algorithm behind package reliable, which makes channels
	// reliable that lose and repeat messages. Linkable says whether there is one.
	Link() Entry
}

// Of makes the entry of an algorithm.
func Of[M any](a protocol.Algorithm[M]) Entry { return boxed(protocol.Erase(a)) }

// boxed makes an entry that shares all drivers with the others. The type of messages of an
// algorithm is erased, because a driver is compiled once for each type, which soon is most of
// the program.
func boxed(a protocol.Algorithm[any]) entry {
	return entry{alone: a, algorithm: a, simulator: simulator(a)}
}

// quick makes an entry with a simulator of its own, which need not box messages: 20 to 40 ns an
// event. It is for algorithms that are simulated with many processes, or for long.
func quick[M any](a protocol.Algorithm[M]) Entry {
	e := boxed(protocol.Erase(a))
	e.simulator = simulator(a)
	return e
}

func simulator[M any](a protocol.Algorithm[M]) func() func(sim.Config) (sim.Result, error) {
	return func() func(sim.Config) (sim.Result, error) { return sim.NewRunner(a).Run }
}

// elected makes the entry of an algorithm with an election beside it.
func elected[M, E any](a protocol.Algorithm[M], election protocol.Algorithm[E]) Entry {
	return Of(withleader.With(protocol.Erase(a), protocol.Erase(election)))
}

// recovering makes the entry of an algorithm behind package membership.
func recovering[M any](a protocol.Algorithm[M]) Entry { return Of(membership.Wrap(protocol.Erase(a))) }

// overPaxos makes the entry of an algorithm that exchanges the messages of its consensus itself.
func overPaxos[M any](a protocol.Algorithm[M]) Entry {
	w := consensus.With(protocol.Erase(a))
	w.Variant, w.Title = "paxos", "the same, with Paxos among its processes in place of a service"
	return Of(w)
}

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
	recovering(centralised.Algorithm),
	elected(centralised.Successor, bully.Algorithm),
	Of(dijkstra.Algorithm),
	Of(lamport.Algorithm),
	Of(lamport.Unordered),
	Of(lamport.Multicast),
	Of(lamport.MulticastUnordered),
	quick(maekawa.Basic),
	quick(maekawa.PrintedVote),
	quick(maekawa.Algorithm),
	Of(peterson.Algorithm),
	quick(ra1.Algorithm),
	quick(ra2.Algorithm),
	recovering(ra2.Algorithm),
	quick(raymond.Algorithm),
	quick(ricartagrawala.Algorithm),
	quick(ricartagrawala.Printed),
	Of(ringelection.Algorithm),
	quick(sigma.Algorithm),
	quick(sigma.Literal),
	quick(statemachine.Algorithm),
	quick(statemachine.Announced),
	quick(statemachine.Memory),
	quick(suzukikasami.Algorithm),
	quick(suzukikasami.RicartAgrawala),
	recovering(suzukikasami.Algorithm),
	quick(tokengme.Algorithm),
	quick(tokengme.Literal),
	quick(tokengme.Several),
	quick(tokengme.Bounded),
	quick(tokengme.WithClients),
	recovering(tokengme.Algorithm),
	recovering(tokengme.Several),
	recovering(tokengme.Bounded),
	quick(tokenring.Algorithm),
	quick(tokenring.Resting),
	quick(tokenring.Bidirectional),
	elected(tokenring.Regenerating, ringelection.Algorithm),
	elected(tokenring.NoEpoch, ringelection.Algorithm),
	quick(wme.First),
	overPaxos(wme.First),
	quick(wme.LiteralFirst),
	quick(wme.Second),
	overPaxos(wme.Second),
	quick(wme.LiteralSecond),
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
