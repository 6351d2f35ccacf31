package groups

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/poundlock/poundlock/lab"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/sim"
)

// Compare measures three algorithms whose users share the lock, under the same load.
var Compare = lab.Experiment{
	Name:  "groups/compare",
	Title: "locks that holders share: Sigma beside TokenGME and RA2",
	Plan:  compare,
}

// The load: users try again as soon as they have left.
const (
	users = 20
	hop   = time.Millisecond // the mean delay of a message, T
	hold  = 5 * hop
)

// What is varied. Of readers and writers each user is the one or the other all the time; the room that a user wants
// is drawn anew for each request.
const (
	writers = "% writers"
	rooms   = "rooms"
)

var workloads = []string{writers, rooms}

// The distributions of delays, all of mean T.
const (
	constant    = "constant"
	exponential = "exponential"
)

var delays = []string{constant, exponential}

// A form is an algorithm. Where its users are members there are no servers.
type form struct {
	name, algorithm, variant string
	members                  bool
}

var (
	sigma = form{"Sigma", "sigma", "", false}
	token = form{"TokenGME, clients", "tokengme", "clients", false}
	ra2   = form{"RA2, members", "ra2", "", true}

	forms = []form{sigma, token, ra2}
)

// The measures. Messages are all that processes send, those between a client and its member among them.
const (
	messages    = "messages"    // an entry
	waiting     = "waiting"     // T
	syncDelay   = "sync_delay"  // T; of a hand-over between two that do not share
	throughput  = "throughput"  // entries in 1000 T
	concurrency = "concurrency" // how many are inside together, on average
	bypass      = "bypass"      // how often others entered, at most, while one waited
)

var measures = lab.Columns(messages, waiting, syncDelay+"=sync", throughput, concurrency+"=together", bypass)

// A scale says how much is tried.
type scale struct {
	servers               []int
	writers, rooms        []int
	entries, replications int // of a user; with a seed each
}

func scaleOf(s lab.Scale) scale {
	all := scale{[]int{4, 7}, []int{0, 5, 10, 20, 50, 100}, []int{1, 2, 4, 8, 20}, 200, 5}
	switch s {
	case lab.Quick:
		return scale{[]int{4}, []int{5, 10, 100}, []int{2, 4}, 30, 3}
	case lab.Full:
		all.servers, all.entries, all.replications = []int{4, 7, 10}, 1000, 10
	}
	return all
}

func (s scale) points(workload string) []int {
	if workload == writers {
		return s.writers
	}
	return s.rooms
}

// A system is one form, with what is around it.
type system struct {
	workload, delay string
	servers         int // 0 where there are none
	form
}

func (s system) labels() []string {
	servers := ""
	if s.servers > 0 {
		servers = strconv.Itoa(s.servers)
	}
	return []string{s.workload, s.delay, servers, s.name}
}

func compare(s lab.Scale) lab.Plan {
	size := scaleOf(s)
	p := lab.Plan{
		Sweep: "x", Labels: []string{"workload", "delay", "servers", "algorithm"},
		Measures: measures,
		Report:   func(r *lab.Results) lab.Report { return size.report(r) },
	}
	for _, y := range size.systems() {
		replications := size.replications
		if y.workload == writers && y.delay == constant {
			replications = 1 // there is no chance in it
		}
		p.Configurations = append(p.Configurations, lab.Configuration{
			Labels: y.labels(), Points: size.points(y.workload), Replications: replications,
			Setup: fmt.Sprintf("users=%d entries=%d hold=%v", users, size.entries, hold),
			Try: func(_ context.Context, x int, seed uint64) (lab.Sample, error) {
				return y.simulate(x, size.entries, seed)
			},
			Expect: y.expect,
		})
	}
	return p
}

func (s scale) systems() (list []system) {
	for _, w := range workloads {
		for _, d := range delays {
			for _, n := range s.servers {
				list = append(list, system{w, d, n, sigma}, system{w, d, n, token})
			}
			list = append(list, system{w, d, 0, ra2})
		}
	}
	return list
}

// config is the simulation of y with so many writers in a hundred, or so many rooms.
func (y system) config(x, entries int, seed uint64) sim.Config {
	c := sim.Config{
		Config: protocol.Config{N: y.servers}, Clients: users,
		Entries: []int{entries}, Seed: seed,
		Delay: sim.Constant(hop), Think: sim.Constant(0), Hold: sim.Constant(hold),
	}
	if y.delay == exponential {
		c.Delay = sim.Exponential(hop)
	}
	if y.members {
		c.N, c.Clients = users, 0
	}
	if y.algorithm == sigma.algorithm {
		c.Options = map[string]int64{"fence": 0} // tokens are no part of what is compared
	}
	if y.workload == rooms {
		c.Groups = x
		return c
	}
	for u := range users {
		want := protocol.Groups("r")
		if u >= users-users*x/100 {
			want = protocol.Alone + "w"
		}
		c.Wants = append(c.Wants, want)
	}
	return c
}

func (y system) simulate(x, entries int, seed uint64) (lab.Sample, error) {
	r, err := catalog.Find(y.algorithm, y.variant).Simulate(y.config(x, entries, seed))
	if err := cmp.Or(err, r.Err()); err != nil {
		return lab.Sample{}, err
	}
	values := map[string]float64{
		messages: float64(r.Messages+r.OverheadMessages) / float64(r.Entries),
		waiting:  r.Waiting.Mean, throughput: r.Throughput, concurrency: r.Concurrency.Mean,
		bypass: float64(r.MaxBypass),
	}
	if r.SyncDelay.Count > 0 {
		values[syncDelay] = r.SyncDelay.Mean
	}
	for m, v := range values {
		values[m] = lab.Rounded(v) // so that the report follows from the table of replications
	}
	return lab.Sample{Values: values}, nil
}

// claimed are the loads of which a number is stated beforehand: everybody writes, a tenth does, four rooms.
func (y system) claimed(x int) bool {
	return y.workload == writers && (x == 10 || x == 100) || y.workload == rooms && x == 4
}

// expect is what is expected of Sigma. Elsewhere an entry costs n messages of five kinds at most, if delays are equal:
// REQUEST, its answer, the support, what tells its client that somebody else waits, and RELEASE.
func (y system) expect(x int) (list []lab.Expectation) {
	if y.algorithm != sigma.algorithm {
		return nil
	}
	n := float64(y.servers)
	most := func(measure string, v float64, formula string) {
		list = append(list, lab.Expectation{Measure: measure, Most: v, Formula: formula})
	}
	switch {
	case y.claimed(x) && y.delay == constant:
		most(messages, 4.1*n, "4.1n")
	case y.claimed(x):
		most(messages, 6.5*n, "6.5n")
	case y.delay == constant:
		most(messages, 5*n, "5n")
	}
	if y.delay == constant {
		others := x - 1
		if y.workload == writers {
			others = 1
			if x == 0 || x == 100 {
				others = 0
			}
		}
		most(bypass, float64(mostBypass(users, others)), "(k-1) + (k-2) + (k-3) + ..")
	}
	return list
}

// mostBypass is how often others enter, at most, while one of k users of Sigma waits, where servers get requests in the
// order of their timestamps and nothing fails: (k-1) + (k-2) + (k-3) + .., with a term more for each of the other
// groups that share. docs/sigma.md derives it.
func mostBypass(k, others int) int {
	most := k - 1
	for i := 1; i <= others && k-1-i > 0; i++ {
		most += k - 1 - i
	}
	return most
}

// verdict is that on all that is expected of a cell, "" where nothing is. Of the bypass the largest one counts.
func verdict(c lab.Cell) lab.Verdict {
	list := c.Expect(c.Point)
	if list == nil {
		return ""
	}
	for _, x := range list {
		values := c.Values(x.Measure)
		if x.Measure == bypass {
			values = []float64{slices.Max(values)}
		}
		if v := x.Verdict(values); !v.Fine() {
			return v
		}
	}
	return lab.Within
}
