package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/poundlock/poundlock/bench/load"
)

// costs are loads of clients of one process, each of which has a name of its own.
func costs() (all []rivalry) {
	for _, clients := range []int{1, 8, 64} {
		what := fmt.Sprintf("processor time, clients: %d", clients)
		claims := []claim{{Rival: echo, Claimed: 1.5, AtMost: true}}
		all = append(all, rivalry{what: what, users: load.Own(clients, 1), count: grants, figure: cpu, claims: claims})
	}
	return all
}

// A bill is what one load costs: processor time, and bytes of the clients' connections, both ways.
type bill struct {
	Load  string             `json:"load"`
	CPU   map[string]float64 `json:"cpu_us"` // of clients and servers, for an acquire and release
	Bytes map[string]float64 `json:"bytes"`  // for the same
	Rates map[string]float64 `json:"per_s"`
}

// cost measures the processor time of clients and servers beside that of sending frames.
func (p plan) cost(ctx context.Context, r *result) error {
	systems, stop, err := start(ctx, []contender{
		{ours, startPoundlock(1), ""},
		{echo, startFour(1, echoServer, echoClient), ""},
	})
	defer stop()
	if err != nil {
		return err
	}
	for _, l := range costs() {
		samples, claims, err := p.measure(ctx, systems, l)
		if err != nil {
			return err
		}
		x := bill{
			Load: l.what, CPU: medians(samples, cpu), Rates: medians(samples, rate),
			Bytes: medians(samples, func(s sample) float64 { return s.Traffic }),
		}
		if x.CPU[ours] == 0 || x.CPU[echo] == 0 {
			return errors.New("the processor time is unknown: it is read from /proc")
		}
		r.Claims, r.Costs = append(r.Claims, claims...), append(r.Costs, x)
	}
	return nil
}

func (r *result) printCosts(w io.Writer) error {
	if len(r.Costs) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\nan acquire and release\tpoundlock\techo\ttimes\tclaimed\tbytes\ta second\n")
	for _, x := range r.Costs {
		c := r.claim(x.Load, echo)
		fmt.Fprintf(t, "%s\t%.0f us\t%.0f us\t%.2f\t%s\t%.0f and %.0f\t%.0f and %.0f\n", x.Load, x.CPU[ours], x.CPU[echo],
			c.Ratio, c.bound(), x.Bytes[ours], x.Bytes[echo], x.Rates[ours], x.Rates[echo])
	}
	return t.Flush()
}
