package catalog

import (
	"fmt"
	"slices"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/causal"
	"github.com/poundlock/poundlock/verify/check"
)

// erased is an algorithm without its type of messages. Drivers are compiled once for each
// type, and once more for each wrapper around it, which soon is most of the program. What
// is wrapped is therefore erased before: all algorithms share one copy of each wrapper and
// of its drivers.
type erased struct{ algorithm protocol.Algorithm[any] }

func (e erased) Info() protocol.Info { return e.algorithm.Info }

func (e erased) Check(c check.Config) (check.Verdict, error) {
	if err := e.unordered(c); err != nil {
		return check.Verdict{}, err
	}
	if e.orders(c) {
		return check.Run(causal.Of(e.algorithm), c)
	}
	return check.Run(e.algorithm, c)
}

func (e erased) Walk(c check.Config) (*check.Walk, error) {
	if err := e.unordered(c); err != nil {
		return nil, err
	}
	if e.orders(c) {
		return check.NewWalk(causal.Of(e.algorithm), c)
	}
	return check.NewWalk(e.algorithm, c)
}

// unordered says why causal.Order cannot be judged, nil where it can or is not asked for.
func (e erased) unordered(c check.Config) error {
	if !slices.Contains(c.Properties, causal.Order) {
		return nil
	}
	if err := causal.Check(e.algorithm.Info); err != nil {
		return fmt.Errorf("check: %s: %w", e.algorithm.Name, err)
	}
	return nil
}

// orders reports whether causal.Order is to be judged. A property that the algorithm does
// not have is left to the wrapper, too: it refuses any but that one, and names all.
func (e erased) orders(c check.Config) bool {
	if e.algorithm.Users == protocol.Nobody || causal.Check(e.algorithm.Info) != nil {
		return false // nobody tries, or nothing is sent
	}
	if slices.Contains(c.Properties, "all") && e.algorithm.Ordered {
		return true
	}
	return slices.ContainsFunc(c.Properties, func(name string) bool { return name != "all" && !check.Knows(e.algorithm, name) })
}

// ordered reports whether a hunt judges causal.Order, which it does where that is claimed
// and not known to be wrong.
func (e erased) ordered() bool {
	return e.algorithm.Ordered && causal.Check(e.algorithm.Info) == nil && !slices.Contains(e.algorithm.Refuted, causal.Order)
}
