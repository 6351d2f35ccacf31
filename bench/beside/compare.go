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
	onDisk    = "etcd"
	inMemory  = "etcd in memory"
	postgres  = "postgresql"
	zookeeper = "zookeeper"
)

// Clients of each system: one in each of the first nine processes hands a lock
// over with eight that wait, all of them with sixty-four.
const (
	processes = 13
	clients   = 5 // of each process
)

// A plan says what is measured, and how.
type plan struct {
	only         string // exclusive, shared, or nothing for both
	rounds       int
	window       time.Duration
	slack        float64
	disk, memory string // directories for data; no memory: no etcd there
}

// What a plan may be about only: locks that nobody shares, and those of readers and writers.
const (
	exclusive = "exclusive"
	shared    = "shared"
)

func compare(ctx context.Context, p plan) (*result, error) {
	r := &result{
		Etcd: version.Version, Go: runtime.Version(), CPUs: runtime.NumCPU(),
		Rounds: p.rounds, WindowMS: p.window.Milliseconds(),
	}
	if p.only != shared {
		if err := p.exclusive(ctx, r); err != nil {
			return nil, err
		}
	}
	if p.only != exclusive {
		if err := p.shared(ctx, r); err != nil {
			return nil, err
		}
	}
	r.Holds = r.within(1)
	return r, nil
}

// A contender is a service that can be started. Its data is in a new directory below dir.
type contender struct {
	name  string
	start func(ctx context.Context, name, dir string) (crew *load.Crew, stop func(), err error)
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
	what    string
	users   []load.User
	count   func(*load.Window) (int, error)
	claimed float64
}

func rivalries() []rivalry {
	return []rivalry{
		{"acquires, 1 name", load.Apart(1, 1), grants, 5},
		{"acquires, 64 names, 1 client", load.Apart(64, 1), grants, 5},
		{"acquires, 64 names, 8 processes", load.Apart(64, 8), grants, 5},
		{"hand-overs, 8 wait", load.Rivals(9, 1), handovers, 10},
		{"hand-overs, 64 wait", load.Rivals(processes, clients), handovers, 10},
	}
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
	all := []contender{{ours, startPoundlock, ""}, {onDisk, startEtcd(etcdClient), p.disk}}
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
		samples, best, err := p.measure(ctx, systems, l)
		if err != nil {
			return err
		}
		x := row{Load: l.what, Best: best, Claimed: l.claimed}
		x.Rates = medians(samples, func(s sample) float64 { return s.rate })
		x.CPU = medians(samples, func(s sample) float64 { return s.cpu })
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

// more is how many times the rounds a comparison with slack may take.
const more = 5

// least is how many grants are seen in a window, however short: of fewer there may be no
// hand-over.
const least = 20

// measure measures one rivalry in every system, in turn, so that what else the machine does
// concerns all of them. With slack it goes on until one round shows what is claimed. best is
// the ratio of that round.
func (p plan) measure(ctx context.Context, systems []system, l rivalry) (samples map[string][]sample, best float64, err error) {
	samples = map[string][]sample{}
	for i := 0; i < p.rounds || p.slack < 1 && best < p.slack*l.claimed && i < more*p.rounds; i++ {
		for k := range systems {
			s := systems[(i+k)%len(systems)]
			fmt.Fprintf(os.Stderr, "%s: %s, window %d of %d\n", l.what, s.name, i+1, p.rounds)
			w, err := s.crew.Run(ctx, load.Load{Users: l.users, WarmUp: 500 * time.Millisecond, Length: p.window, Grants: least})
			if err != nil {
				return nil, 0, fmt.Errorf("%s: %s: %w", l.what, s.name, err)
			}
			k, err := l.count(w)
			if err != nil {
				return nil, 0, fmt.Errorf("%s: %s: %w", l.what, s.name, err)
			}
			rate, cpu := float64(k)/w.Length.Seconds(), float64(w.CPU.Microseconds())/float64(max(1, k))
			samples[s.name] = append(samples[s.name], sample{w, rate, cpu})
		}
		best = max(best, samples[ours][i].rate/samples[onDisk][i].rate)
	}
	return samples, best, nil
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
