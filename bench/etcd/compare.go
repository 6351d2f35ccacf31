package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/poundlock/poundlock/bench/load"
)

const (
	ours     = "poundlock"
	onDisk   = "etcd"
	inMemory = "etcd in memory"
)

// Clients of each system: one in each of the first nine processes hands a lock
// over with eight that wait, all of them with sixty-four.
const (
	processes = 13
	clients   = 5 // of each process
)

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

// A system is one cluster and its clients.
type system struct {
	name string
	crew *load.Crew
}

func compare(ctx context.Context, rounds int, window time.Duration, slack float64, disk, memory string) (*result, error) {
	names := []string{ours, onDisk}
	switch info, err := os.Stat(memory); {
	case memory == "":
	case err == nil && info.IsDir():
		names = append(names, inMemory)
	default:
		fmt.Fprintf(os.Stderr, "SKIPPED: etcd in memory: no directory %q\n", memory)
	}
	dirs := map[string]string{onDisk: disk, inMemory: memory}
	var systems []system
	for _, name := range names {
		start := startEtcd
		if name == ours {
			start = startPoundlock
		}
		crew, stop, err := start(ctx, name, dirs[name])
		defer stop()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		systems = append(systems, system{name, crew})
	}
	r := &result{
		Etcd: version.Version, Go: runtime.Version(), CPUs: runtime.NumCPU(),
		Rounds: rounds, WindowMS: window.Milliseconds(),
	}
	for _, l := range rivalries() {
		x, err := l.run(ctx, systems, rounds, window, slack)
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, x)
	}
	r.Holds = r.within(1)
	return r, nil
}

// more is how many times the rounds a comparison with slack may take.
const more = 5

// least is how many grants are seen in a window, however short: of fewer there may be no
// hand-over.
const least = 20

// run measures one rivalry in every system, in turn, so that what else the machine does
// concerns all of them. With slack it goes on until one round shows what is claimed.
func (l rivalry) run(ctx context.Context, systems []system, rounds int, window time.Duration, slack float64) (row, error) {
	rates, cpu := map[string][]float64{}, map[string][]float64{}
	best := 0.0
	for i := 0; i < rounds || slack < 1 && best < slack*l.claimed && i < more*rounds; i++ {
		for k := range systems {
			s := systems[(i+k)%len(systems)]
			fmt.Fprintf(os.Stderr, "%s: %s, window %d of %d\n", l.what, s.name, i+1, rounds)
			w, err := s.crew.Run(ctx, load.Load{Users: l.users, WarmUp: 500 * time.Millisecond, Length: window, Grants: least})
			if err != nil {
				return row{}, fmt.Errorf("%s: %s: %w", l.what, s.name, err)
			}
			k, err := l.count(w)
			if err != nil {
				return row{}, fmt.Errorf("%s: %s: %w", l.what, s.name, err)
			}
			rates[s.name] = append(rates[s.name], float64(k)/w.Length.Seconds())
			cpu[s.name] = append(cpu[s.name], float64(w.CPU.Microseconds())/float64(max(1, k)))
		}
		best = max(best, rates[ours][i]/rates[onDisk][i])
	}
	x := row{Load: l.what, Best: best, Rates: medians(rates), CPU: medians(cpu), Ratios: map[string]float64{}, Claimed: l.claimed}
	for name, rate := range x.Rates {
		if name != ours {
			x.Ratios[name] = x.Rates[ours] / rate
		}
	}
	return x, nil
}

func medians(all map[string][]float64) map[string]float64 {
	m := map[string]float64{}
	for name, values := range all {
		slices.Sort(values)
		m[name] = values[len(values)/2]
	}
	return m
}
