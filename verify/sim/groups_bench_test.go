//go:build unix

package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/ra2"
	"github.com/poundlock/poundlock/algo/tokengme"
	"github.com/poundlock/poundlock/verify/sim"
)

// Requests for few groups and for many, as in section 4 of Mittal and Mohan.
func BenchmarkTokenGME(b *testing.B) {
	for _, n := range []int{100, 500} {
		for _, m := range []int{1, 10, 100} {
			anEntry := 2 * n
			if m == 1 {
				anEntry = 2 // no messages
			}
			c := saturated(n, 1, sim.Exponential(10*time.Millisecond))
			c.Groups, c.Think, c.Hold = m, sim.Exponential(100*time.Millisecond), sim.Exponential(10*time.Millisecond)
			bench(b, fmt.Sprintf("n=%d/groups=%d", n, m), tokengme.Algorithm, c, anEntry)
		}
	}
}

// The workload of the experiments of the same paper. What is allocated in steady state is the
// memory of vectors: a page for so many grants of a leader, and a log for at least n parts of
// pages at a process.
func BenchmarkRA2(b *testing.B) {
	for _, n := range []int{100, 500} {
		c := saturated(n, 1, sim.Exponential(10*time.Millisecond))
		c.Groups, c.Popularity = 50, sim.Popularity{Alpha: 20, Beta: 80}
		c.Think, c.Hold = sim.Exponential(50*time.Millisecond), sim.Uniform(0, 40*time.Millisecond)
		bench(b, fmt.Sprintf("n=%d", n), ra2.Algorithm, c, 2*n)
	}
}
