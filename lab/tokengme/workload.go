package tokengme

import (
	"cmp"
	"time"

	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/sim"
)

// unit is the unit of time of section 4.
const unit = time.Millisecond

// bandwidth is that of a channel, in kbit per unit.
const bandwidth = 100

type parameters struct {
	n, m         int // processes, groups
	ncs, cs, cd  int // mean times out of and in the critical section, and on a channel, in units
	alpha, beta  int // alpha % of the groups are for beta % of the requests
	requests     int // of each process
	replications int
	most         int     // replications
	precision    float64 // half of the intervals that waiting and throughput should have, relative to their ratios
}

// base are the parameters that a figure does not vary.
func base(s lab.Scale) parameters {
	p := parameters{n: 100, m: 50, ncs: 50, cs: 20, cd: 10, alpha: 20, beta: 80}
	switch s {
	case lab.Quick:
		p.requests, p.replications, p.most, p.precision = 150, 4, 16, 0.03
	case lab.Default:
		p.requests, p.replications, p.most, p.precision = 150, 4, 12, 0.03
	default:
		p.requests, p.replications, p.most, p.precision = 500, 5, 22, 0.02
	}
	return p
}

// A form is an algorithm with its choices.
type form struct {
	name      string
	algorithm string
	options   map[string]int64
	fifo      bool
}

// speeds are about how many events an algorithm handles in a second on one core: so many with
// few processes, and half of that with so many of them.
var speeds = map[string]struct{ events, half float64 }{
	"tokengme": {6.5e6, 300},
	"ra2":      {4.5e6, 120},
}

// The forms. The first one of each algorithm is the one that figures show; the others are
// choices that the text leaves open.
var (
	token   = form{name: "TokenGME", algorithm: "tokengme"}
	strict  = form{name: "TokenGME, strict", algorithm: "tokengme", options: map[string]int64{"admission": 1}}
	ordered = form{name: "TokenGME, FIFO channels", algorithm: "tokengme", fifo: true}
	fifo    = form{name: "TokenGME, fifo", algorithm: "tokengme", options: map[string]int64{"selection": 1}}
	largest = form{name: "TokenGME, largest", algorithm: "tokengme", options: map[string]int64{"selection": 2}}

	ra2      = form{name: "RA2", algorithm: "ra2"}
	onEntry  = form{name: "RA2, invites on entry", algorithm: "ra2", options: map[string]int64{"invite": 0}}
	valuesOf = form{name: "RA2, 1 integer an entry", algorithm: "ra2", options: map[string]int64{"entry": 1}}
)

// config is the simulation of f with these parameters.
func (f form) config(p parameters, seed uint64) sim.Config {
	return sim.Config{
		Config:     protocol.Config{N: p.n, Options: f.options},
		Entries:    []int{p.requests},
		Seed:       seed,
		Delay:      sim.Exponential(time.Duration(p.cd) * unit),
		Think:      sim.Exponential(time.Duration(p.ncs) * unit),
		Hold:       sim.Uniform(0, 2*time.Duration(p.cs)*unit),
		Groups:     p.m,
		Popularity: sim.Popularity{Alpha: float64(p.alpha), Beta: float64(p.beta)},
		Bandwidth:  bandwidth,
		FIFO:       f.fifo,
		Patience:   1 << 40,
	}
}

// The measures: the four of section 4, and others.
const (
	messages     = "messages"      // an entry
	size         = "size"          // integers a message
	waiting      = "waiting"       // ms
	throughput   = "throughput"    // entries a second
	throughput90 = "throughput_90" // the same, until 90 % were made
	concurrency  = "concurrency"
	sessions     = "sessions"
)

var measures = lab.Columns(messages, size, waiting, throughput, throughput90, concurrency, sessions)

// four are the measures of section 4, with what figures call them.
var four = lab.Columns(messages+"=message complexity", size+"=message size", waiting+"=waiting time", throughput)

func (f form) simulate(p parameters, seed uint64) (lab.Sample, error) {
	r, err := catalog.Find(f.algorithm, "").Simulate(f.config(p, seed))
	if err := cmp.Or(err, r.Err()); err != nil {
		return lab.Sample{}, err
	}
	values := map[string]float64{
		messages: r.MessagesPerEntry, size: r.IntegersPerMessage, waiting: r.Waiting.Mean,
		throughput: r.Throughput, throughput90: r.Throughput90,
		concurrency: r.Concurrency.Mean, sessions: float64(r.Sessions),
	}
	for m, v := range values {
		values[m] = lab.Rounded(v) // so that all tables follow from that of replications
	}
	return lab.Sample{Values: values}, nil
}

// cost is about how long a run takes: each entry costs at most 2n messages and some more.
func (f form) cost(p parameters) time.Duration {
	speed := speeds[f.algorithm]
	n := float64(p.n)
	return time.Duration(n * float64(p.requests) * (2*n + 4) * (1 + n/speed.half) / speed.events * float64(time.Second))
}
