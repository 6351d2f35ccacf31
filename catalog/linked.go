package catalog

import (
	"github.com/poundlock/poundlock/causal"
	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/hunt"
	"github.com/poundlock/poundlock/link"
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/sim"
)

// linked is an entry behind package link. It is no entry of the wrapped algorithm,
// whose Link would be one of an algorithm that is wrapped twice, and so on.
type linked[M any] struct {
	entry   entry[M]
	wrapped protocol.Algorithm[link.Frame[M]]
}

func (e entry[M]) Link() Entry { return linked[M]{e, link.Wrap(e.algorithm)} }

func (l linked[M]) Info() protocol.Info { return l.wrapped.Info }

func (l linked[M]) Simulate(c sim.Config) (sim.Result, error) { return sim.Run(l.wrapped, c) }

func (l linked[M]) Simulator() func(sim.Config) (sim.Result, error) {
	return sim.NewRunner(l.wrapped).Run
}

// Check checks the order of tries by the messages of the algorithm: no clock of its
// own hears of acknowledgements.
func (l linked[M]) Check(c check.Config) (check.Verdict, error) {
	if l.entry.orders(c) {
		return check.Run(link.Wrap(causal.Of(l.entry.algorithm)), c)
	}
	return check.Run(l.wrapped, c)
}

func (l linked[M]) Walk(c check.Config) (*check.Walk, error) {
	if l.entry.orders(c) {
		return check.NewWalk(link.Wrap(causal.Of(l.entry.algorithm)), c)
	}
	return check.NewWalk(l.wrapped, c)
}

func (l linked[M]) Hunt(c hunt.Config) (hunt.Result, error) {
	if l.entry.ordered() {
		return hunt.Run(link.Wrap(causal.Of(l.entry.algorithm)), c)
	}
	return hunt.Run(l.wrapped, c)
}

// Host is that of the algorithm alone: a node has sessions, which are its links.
func (l linked[M]) Host() node.Host { return l.entry.Host() }

func (l linked[M]) Link() Entry { return l }
