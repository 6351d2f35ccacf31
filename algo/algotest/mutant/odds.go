package mutant

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Odds order checks, so that the next mutant is likely to be caught soon. The obvious order is
// the written one, the cheap checks first; but most mutants of an algorithm with many checks are
// caught by the later ones, and each time all before these are asked in vain. A table of who
// caught which mutant last time would know, and be wrong at each change of wording. What is known
// without one: how long each check takes when it finds nothing, and which checks caught the
// mutants that are done, above all those of the same function. A process that is most likely to catch it
// for its time comes first. Whether a mutant is caught depends on no order.
type odds struct {
	cost   []float64            // of each check, in seconds
	caught map[string][]float64 // how many mutants of a function each check caught; "": of all
}

func newOdds(took []time.Duration) *odds {
	o := &odds{caught: map[string][]float64{"": make([]float64, len(took))}}
	for _, d := range took {
		o.cost = append(o.cost, max(d, time.Millisecond).Seconds())
	}
	return o
}

// function is the function that a mutant is in, or the name of one that has a name.
func function(mutant string) string {
	f, _, _ := strings.Cut(mutant, ":")
	return f
}

// order returns the numbers of the checks, from 1, in the order for a mutant.
func (o *odds) order(mutant string) []int {
	all, near := o.caught[""], o.caught[function(mutant)]
	total := 1.0
	for _, n := range all {
		total += n
	}
	order := make([]int, len(o.cost))
	score := make([]float64, len(o.cost))
	for k := range order {
		order[k] = k + 1
		likely := 0.1 + 3*all[k]/total
		if near != nil {
			likely += 3 * near[k]
		}
		score[k] = likely / o.cost[k]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score[b-1], score[a-1]) })
	return order
}

// note remembers that a check, from 1, caught a mutant; 0: none did.
func (o *odds) note(mutant string, check int) {
	if check == 0 {
		return
	}
	for _, f := range []string{"", function(mutant)} {
		if o.caught[f] == nil {
			o.caught[f] = make([]float64, len(o.cost))
		}
		o.caught[f][check-1]++
	}
}
