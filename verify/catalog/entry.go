package catalog

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/hunt"
	"github.com/poundlock/poundlock/verify/live"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/reliable"
)

type entry struct {
	alone     protocol.Algorithm[any] // without links
	algorithm protocol.Algorithm[any] // as it runs
	linked    bool
	simulator func() func(sim.Config) (sim.Result, error)
}

// Linkable says why an entry has no form behind package reliable, nil if it has.
func Linkable(e Entry) error { return reliable.Check(e.Info()) }

func (e entry) Link() Entry {
	if e.linked {
		return e
	}
	l := boxed(protocol.Erase(reliable.Wrap(e.alone)))
	l.alone, l.linked = e.alone, true
	return l
}

func (e entry) Info() protocol.Info { return e.algorithm.Info }

func (e entry) Simulate(c sim.Config) (sim.Result, error) { return e.simulator()(c) }

func (e entry) Simulator() func(sim.Config) (sim.Result, error) { return e.simulator() }

func (e entry) OnNetwork(ctx context.Context, c sim.Config) (sim.Result, error) {
	return e.OnProcesses(ctx, c, nil)
}

func (e entry) OnProcesses(ctx context.Context, c sim.Config, program func() *exec.Cmd) (sim.Result, error) {
	if e.linked {
		return sim.Result{}, fmt.Errorf("%w: %s: --link: not on a network: nodes have reliable channels", sim.ErrConfig, e.algorithm.Name)
	}
	return live.Run(ctx, e.algorithm, c, program)
}

func (e entry) Process(in io.Reader, out io.Writer) error { return live.Process(e.algorithm, in, out) }

func (e entry) Check(c check.Config) (check.Verdict, error) {
	a, err := e.model(c)
	if err != nil {
		return check.Verdict{}, err
	}
	return check.Run(a, c)
}

func (e entry) Walk(c check.Config) (*check.Walk, error) {
	a, err := e.model(c)
	if err != nil {
		return nil, err
	}
	return check.NewWalk(a, c)
}

// Hunt judges causal.Order where that is claimed and not known to be wrong.
func (e entry) Hunt(c hunt.Config) (hunt.Result, error) {
	if e.alone.Ordered && causal.Check(e.alone.Info) == nil && !slices.Contains(e.alone.Refuted, causal.Order) {
		return hunt.Run(e.ordered(), c)
	}
	return hunt.Run(e.algorithm, c)
}

// ordered is the algorithm with causal.Order as a property, by its own messages: no clock of it
// hears of acknowledgements.
func (e entry) ordered() protocol.Algorithm[any] {
	o := protocol.Erase(causal.Of(e.alone))
	if e.linked {
		return protocol.Erase(reliable.Wrap(o))
	}
	return o
}

// model is what a check is of. A property that the algorithm does not have is left to
// package causal, too: it refuses any but that one, and names all. An error says why causal.Order
// is asked for and cannot be judged.
func (e entry) model(c check.Config) (protocol.Algorithm[any], error) {
	a, err := e.alone, causal.Check(e.alone.Info)
	switch {
	case err != nil && slices.Contains(c.Properties, causal.Order):
		return a, fmt.Errorf("check: %s: %w", a.Name, err)
	case err != nil || a.Users == protocol.Nobody: // nothing is sent, or nobody tries
		return e.algorithm, nil
	case slices.Contains(c.Properties, "all") && a.Ordered,
		slices.ContainsFunc(c.Properties, func(name string) bool { return name != "all" && !check.Knows(a, name) }):
		return e.ordered(), nil
	}
	return e.algorithm, nil
}
