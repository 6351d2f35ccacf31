package statistics

import "math/rand/v2"

// The streams of random numbers of a queue.
const (
	forArrivals = iota + 1
	forServices
)

// A queue has one server, customers that arrive at exponential distances, and serves them
// in order. The mean time of service is 1.
type queue struct {
	load          float64 // of the server, below 1
	deterministic bool    // each service takes 1 (M/D/1), and is not exponential (M/M/1)
}

// wait is the mean time that a customer waits in the steady state: that of Pollaczek and
// Khinchine.
func (q queue) wait() float64 {
	w := q.load / (1 - q.load)
	if q.deterministic {
		return w / 2
	}
	return w
}

// run returns how long customers wait on average, but for the first ones: the queue is empty
// at first. Queues with one seed see the same arrivals, relative to their load.
func (q queue) run(seed uint64, first, customers int) float64 {
	arrivals, services := rand.New(rand.NewPCG(seed, forArrivals)), rand.New(rand.NewPCG(seed, forServices))
	wait, sum := 0.0, 0.0
	for i := range first + customers {
		if i >= first {
			sum += wait
		}
		service := 1.0
		if !q.deterministic {
			service = services.ExpFloat64()
		}
		wait = max(0, wait+service-arrivals.ExpFloat64()/q.load) // Lindley
	}
	return sum / float64(customers)
}
