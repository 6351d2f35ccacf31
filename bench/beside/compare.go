package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/poundlock/poundlock/bench/load"
)

const (
	ours      = "poundlock"
	echo      = "echo"
	onDisk    = "etcd"
	inMemory  = "etcd in memory"
	redlock   = "redsync"
	postgres  = "postgresql"
	zookeeper = "zookeeper"
)

// Client processes of each system: a client in each of the first nine hands a lock
// over with eight that wait, and five in each of all do with sixty-four.
const processes = 13

const warmUp = 300 * time.Millisecond // before each window

// A plan says what is measured, and how.
type plan struct {
	only         string // one part, or nothing for all
	rounds       int
	window       time.Duration
	slack        float64
	disk, memory string // directories for data; no memory: no etcd there
}

// The parts of a plan: the processor time of locks beside that of an echo, locks that nobody
// shares, and those of readers and writers.
const (
	cost      = "cost"
	exclusive = "exclusive"
	shared    = "shared"
)

func compare(ctx context.Context, p plan) (*result, error) {
	r := &result{
		Etcd: version.Version, Go: runtime.Version(), CPUs: runtime.NumCPU(),
		Rounds: p.rounds, WindowMS: p.window.Milliseconds(),
	}
	for _, part := range []struct {
		name    string
		measure func(context.Context, *result) error
	}{{cost, p.cost}, {exclusive, p.exclusive}, {shared, p.shared}} {
		if p.only != "" && p.only != part.name {
			continue
		}
		if err := part.measure(ctx, r); err != nil {
			return nil, err
		}
	}
	r.Holds = len(r.unmet(1)) == 0
	return r, nil
}

// A starter starts servers, with data in a new directory below dir, and clients. name is for
// errors. What it returns as stop ends all that was started, also after an error.
type starter func(ctx context.Context, name, dir string) (crew *load.Crew, stop func(), err error)

// A contender is a service that can be started.
type contender struct {
	name  string
	start starter
	dir   string
}

// A system is one cluster and its clients.
type system struct {
	name string
	crew *load.Crew
}

// errAbsent is of a service that this machine does not have.
var errAbsent = errors.New("not installed")

// start starts all of them, except those that this machine does not have.
func start(ctx context.Context, all []contender) (systems []system, stop func(), err error) {
	var stops stops
	for _, c := range all {
		crew, end, err := c.start(ctx, c.name, c.dir)
		stops.add(end)
		switch {
		case errors.Is(err, errAbsent):
			fmt.Fprintf(os.Stderr, "SKIPPED: %s: %v\n", c.name, err)
		case err != nil:
			return nil, stops.all, fmt.Errorf("%s: %w", c.name, err)
		default:
			systems = append(systems, system{c.name, crew})
		}
	}
	return systems, stops.all, nil
}

// stops are what ends what has been started.
type stops struct{ each []func() }

func (s *stops) add(stop func()) { s.each = append(s.each, stop) }

// all ends everything, the last one first.
func (s *stops) all() {
	for _, stop := range slices.Backward(s.each) {
		stop()
	}
}

// A rivalry is what users do in a window, and what is counted.
type rivalry struct {
	what   string
	users  []load.User
	count  func(*load.Window) (int, error)
	figure func(sample) float64 // that is compared
	claims []claim
	absent []string // the systems that take no part
}

// A claim is about the ratio of a figure of poundlock's to that of a rival.
type claim struct {
	Load    string  `json:"load"`
	Rival   string  `json:"rival"`
	Ratio   float64 `json:"ratio"`      // of the medians
	Best    float64 `json:"best_ratio"` // in one round
	Claimed float64 `json:"claimed"`    // the least that it may be
	AtMost  bool    `json:"at_most"`    // Claimed is the most instead
}

// met reports whether the ratio is what is claimed or, with slack, the best one is that part of it.
func (c claim) met(slack float64) bool {
	ratio := c.Ratio
	if slack < 1 {
		ratio = c.Best
	}
	if c.AtMost {
		return ratio*slack <= c.Claimed
	}
	return ratio >= slack*c.Claimed
}

// better is the ratio that comes nearer to what is claimed, or goes further.
func (c claim) better(a, b float64) float64 {
	if c.AtMost {
		return min(a, b)
	}
	return max(a, b)
}

// bound is what is claimed, in words.
func (c claim) bound() string {
	if c.AtMost {
		return fmt.Sprintf("at most %g", c.Claimed)
	}
	return fmt.Sprintf("at least %g", c.Claimed)
}

// err says that it is not met.
func (c claim) err(slack float64) error {
	ratio, within := c.Ratio, ""
	if slack < 1 {
		ratio, within = c.Best, fmt.Sprintf(" with slack %g, and in the best round", slack)
	}
	return fmt.Errorf("%s: %.2f times %s, claimed is %s%s", c.Load, ratio, c.Rival, c.bound(), within)
}

// rivalries are the loads of locks that nobody shares. Clients that acquire are in one process.
func rivalries() (all []rivalry) {
	acquires := func(what string, users []load.User, absent ...string) {
		claims := []claim{{Rival: onDisk, Claimed: 10}, {Rival: redlock, Claimed: 2.5}}
		all = append(all, rivalry{what: "acquires, " + what, users: users, count: grants, figure: rate, claims: claims, absent: absent})
	}
	acquires("1 client", load.Own(1, 1))
	acquires("64 users of 1 client", load.Apart(64, 1), echo) // which has one user a client
	acquires("64 clients", load.Own(64, 1))
	waits := func(waiters int, users []load.User, timesEtcd float64) {
		claims := []claim{{Rival: onDisk, Claimed: timesEtcd}, {Rival: postgres, Claimed: 0.6}}
		what := fmt.Sprintf("hand-overs, %d wait", waiters)
		// Those who want a lock of Redlock do not wait: they ask again after a random time.
		all = append(all, rivalry{what: what, users: users, count: handovers, figure: rate, claims: claims, absent: []string{redlock, echo}})
	}
	waits(8, load.Rivals(9, 1), 25)
	waits(64, load.Rivals(processes, 5), 15)
	return all
}

func grants(w *load.Window) (int, error) { return w.Grants(), nil }

func handovers(w *load.Window) (int, error) {
	times := w.Handovers()
	if err := w.Judge().Err(); err != nil {
		return 0, err
	}
	return len(times), nil
}

// exclusive measures locks that nobody shares.
func (p plan) exclusive(ctx context.Context, r *result) error {
	all := []contender{
		{ours, startPoundlock(processes), ""},
		{onDisk, startEtcd(etcdClient), p.disk},
		{redlock, startRedsync, p.disk},
		{postgres, startPostgres, p.disk},
		{echo, startFour(1, echoServer, echoClient), ""},
	}
	switch info, err := os.Stat(p.memory); {
	case p.memory == "":
	case err == nil && info.IsDir():
		all = append(all, contender{inMemory, startEtcd(etcdClient), p.memory})
	default:
		fmt.Fprintf(os.Stderr, "SKIPPED: %s: no directory %q\n", inMemory, p.memory)
	}
	systems, stop, err := start(ctx, all)
	defer stop()
	if err != nil {
		return err
	}
	for _, l := range rivalries() {
		samples, claims, err := p.measure(ctx, systems, l)
		if err != nil {
			return err
		}
		r.Claims = append(r.Claims, claims...)
		x := row{Load: l.what, Rates: medians(samples, rate), CPU: medians(samples, cpu)}
		for _, guest := range []string{redlock, postgres} { // whose servers are other processes than those that are read
			delete(x.CPU, guest)
		}
		x.Ratios = map[string]float64{}
		for name, rate := range x.Rates {
			if name != ours {
				x.Ratios[name] = x.Rates[ours] / rate
			}
		}
		r.Rows = append(r.Rows, x)
	}
	return nil
}

// A sample is what one window shows of one system.
type sample struct {
	*load.Window
	rate float64 // of what is counted, a second
	cpu  float64 // us of clients and servers for one of them
}

func rate(s sample) float64 { return s.rate }

func cpu(s sample) float64 { return s.cpu }

// more is how many times the rounds a comparison with slack may take.
const more = 5

// least is how many grants are seen in a window, however short: of fewer there may be no
// hand-over.
const least = 20

// measure measures one rivalry in every system, in turn, so that what else the machine does
// concerns all of them. With slack it goes on until some round has shown each of the claims,
// which it returns as far as their rivals are here.
func (p plan) measure(ctx context.Context, systems []system, l rivalry) (samples map[string][]sample, claims []claim, err error) {
	systems = slices.DeleteFunc(slices.Clone(systems), func(s system) bool { return slices.Contains(l.absent, s.name) })
	for _, c := range l.claims {
		if slices.ContainsFunc(systems, func(s system) bool { return s.name == c.Rival }) {
			c.Load = l.what
			claims = append(claims, c)
		}
	}
	samples = map[string][]sample{}
	unmet := func(c claim) bool { return !c.met(p.slack) }
	for i := 0; i < p.rounds || p.slack < 1 && slices.ContainsFunc(claims, unmet) && i < more*p.rounds; i++ {
		for k := range systems {
			s := systems[(i+k)%len(systems)]
			w, err := s.crew.Run(ctx, load.Load{Users: l.users, WarmUp: warmUp, Length: p.window, Grants: least})
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %s: %w", l.what, s.name, err)
			}
			k, err := l.count(w)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %s: %w", l.what, s.name, err)
			}
			rate, cpu := float64(k)/w.Length.Seconds(), float64(w.CPU.Microseconds())/float64(max(1, k))
			samples[s.name] = append(samples[s.name], sample{w, rate, cpu})
			fmt.Fprintf(os.Stderr, "%s: %s, window %d of %d: %.0f a second\n", l.what, s.name, i+1, p.rounds, rate)
		}
		for k := range claims {
			c := &claims[k]
			ratio := l.figure(samples[ours][i]) / l.figure(samples[c.Rival][i])
			if i == 0 {
				c.Best = ratio
			}
			c.Best = c.better(c.Best, ratio)
		}
	}
	figures := medians(samples, l.figure)
	for k := range claims {
		claims[k].Ratio = figures[ours] / figures[claims[k].Rival]
	}
	return samples, claims, nil
}

// medians are those of something of each system's samples.
func medians(samples map[string][]sample, of func(sample) float64) map[string]float64 {
	m := map[string]float64{}
	for name, all := range samples {
		m[name] = of(median(all, of))
	}
	return m
}

// median is the sample that is in the middle by something.
func median(all []sample, by func(sample) float64) sample {
	all = slices.SortedFunc(slices.Values(all), func(a, b sample) int { return cmp.Compare(by(a), by(b)) })
	return all[len(all)/2]
}
