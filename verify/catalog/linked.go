package catalog

import (
	"github.com/poundlock/poundlock/node"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/hunt"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/reliable"
)

// linked is an entry behind package reliable. It is no entry of the wrapped algorithm,
// whose Link would be one of an algorithm that is wrapped twice, and so on.
type linked struct {
	alone   erased
	wrapped protocol.Algorithm[reliable.Frame[any]]
	host    func() node.Host
}

// Linkable says why an entry has no form behind package reliable, nil if it has.
func Linkable(e Entry) error { return reliable.Check(e.Info()) }

func (l linked) Info() protocol.Info { return l.wrapped.Info }

func (l linked) Simulate(c sim.Config) (sim.Result, error) { return sim.Run(l.wrapped, c) }

func (l linked) Simulator() func(sim.Config) (sim.Result, error) {
	return sim.NewRunner(l.wrapped).Run
}

// Check checks the order of tries by the messages of the algorithm: no clock of its
// own hears of acknowledgements.
func (l linked) Check(c check.Config) (check.Verdict, error) {
	if l.alone.orders(c) {
		return check.Run(reliable.Wrap(causal.Of(l.alone.algorithm)), c)
	}
	return check.Run(l.wrapped, c)
}

func (l linked) Walk(c check.Config) (*check.Walk, error) {
	if l.alone.orders(c) {
		return check.NewWalk(reliable.Wrap(causal.Of(l.alone.algorithm)), c)
	}
	return check.NewWalk(l.wrapped, c)
}

func (l linked) Hunt(c hunt.Config) (hunt.Result, error) {
	if l.alone.ordered() {
		return hunt.Run(reliable.Wrap(causal.Of(l.alone.algorithm)), c)
	}
	return hunt.Run(l.wrapped, c)
}

// Host is that of the algorithm alone: a node has sessions, which are its links.
func (l linked) Host() node.Host { return l.host() }

func (l linked) Link() Entry { return l }
