package lab_test

import (
	"context"
	"fmt"
	"os"

	"github.com/poundlock/poundlock/algo/raymond"
	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// What does an entry of Raymond's algorithm cost where all want to enter all the time? The plan says
// what is tried, and the report what came out.
func ExampleRun() {
	costs := lab.Experiment{
		Name: "example/costs", Title: "Messages an entry",
		Plan: func(lab.Scale) lab.Plan {
			return lab.Plan{
				Sweep: "N", Labels: []string{"algorithm"}, Measures: lab.Columns("messages"),
				Configurations: []lab.Configuration{{
					Labels: []string{"raymond"}, Points: []int{3, 7, 15},
					Try: func(_ context.Context, n int, seed uint64) (lab.Sample, error) {
						r, err := sim.Run(raymond.Algorithm, sim.Config{
							Config: protocol.Config{N: n}, Entries: []int{20}, Think: sim.Constant(0), Seed: seed,
						})
						return lab.Sample{Values: map[string]float64{"messages": r.MessagesPerEntry}}, err
					},
				}},
				Report: func(r *lab.Results) lab.Report {
					for _, c := range r.Cells() {
						fmt.Printf("N=%d: %.1f messages an entry\n", c.Point, c.Values("messages")[0])
					}
					return lab.Report{}
				},
			}
		},
	}
	if _, err := lab.Run(context.Background(), costs, lab.Options{Workers: 1}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	// Output:
	// N=3: 2.6 messages an entry
	// N=7: 3.4 messages an entry
	// N=15: 3.7 messages an entry
}
