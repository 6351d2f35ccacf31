// Package demo shows what the locks are for: workers count in one file under one lock, while
// the servers that hold the lock are killed one after the other and start again empty.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/clock"
)

// ClockBound is less than the default: all processes share one clock, and the first grants after
// a start wait for some of it.
const ClockBound = time.Millisecond

const (
	servers  = 4
	patience = 20 * time.Second // for workers that shall start, say something, or end
)

// Config describes a demo.
type Config struct {
	Workers  int
	Duration time.Duration
	Seed     uint64 // the order of the kills and the pauses between them follow from it
	Unlocked bool   // the workers count without the lock
	History  string // directory for the events of each worker, "" for none
	By       string // the program, for the headers of these

	Server []string // the arguments with which this program is a server; a name and a table follow
	Worker string   // the command with which it calls Work

	Out      io.Writer // of what happens meanwhile; nil: nothing is shown
	Terminal bool      // Out is one
}

// A Result is the verdict of a demo.
type Result struct {
	Servers    int     `json:"servers"`
	Workers    int     `json:"workers"`
	Seed       uint64  `json:"seed"`
	DurationMS int64   `json:"duration_ms"`
	Kills      int     `json:"kills"`
	Expected   uint64  `json:"expected"`
	Counted    uint64  `json:"counted"`
	Lost       int64   `json:"lost"`
	LocksLost  uint64  `json:"locks_lost"`
	Fenced     uint64  `json:"fenced"`
	Failed     uint64  `json:"failed"`
	Error      string  `json:"error,omitempty"`
	LongestMS  float64 `json:"longest_wait_ms"`
	PerS       float64 `json:"per_s"`
}

// Text says it for people.
func (r *Result) Text() string {
	text := fmt.Sprintf("%d servers killed, %d workers, %.0f sections a second, longest wait %.4g ms\n",
		r.Kills, r.Workers, r.PerS, r.LongestMS)
	if r.LocksLost+r.Fenced+r.Failed > 0 {
		text += fmt.Sprintf("%d locks lost, %d writes refused by the fenced counter, %d other failures %s\n",
			r.LocksLost, r.Fenced, r.Failed, r.Error)
	}
	return fmt.Sprintf("%sexpected %d, counted %d, lost %d\n", text, r.Expected, r.Counted, r.Lost)
}

// A demo is one that runs.
type demo struct {
	Config
	servers *load.Servers
	team    *load.Team[report]
	reports []report // the last of each worker
	random  *rand.Rand
	began   time.Time
	kills   int
	lives   [servers]int
	up      [servers]time.Time // zero while it is dead
	lines   int                // of the table on the screen
	shown   time.Time          // when it was, or the last line of totals
}

// Run runs a demo until its time is over or ctx ends.
func Run(ctx context.Context, c Config) (*Result, error) {
	dir, err := os.MkdirTemp("", "pldemo")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var addrs []string
	for i := range servers {
		addrs = append(addrs, "unix:"+filepath.Join(dir, fmt.Sprintf("s%d", i+1)))
	}
	d := &demo{Config: c, reports: make([]report, c.Workers), random: rand.New(rand.NewPCG(c.Seed, 0))}
	if d.servers, err = load.StartServers(ctx, addrs, c.Server...); err != nil {
		return nil, err
	}
	defer d.servers.Close()
	count := counter{filepath.Join(dir, "counter")}
	d.team, err = load.StartTeam[report](c.Workers, "worker", func(i int) []string {
		spec := spec{Table: d.servers.Table, Counter: count.path, Unlocked: c.Unlocked, By: c.By}
		if c.History != "" {
			spec.Events = filepath.Join(c.History, fmt.Sprintf("worker-%d.jsonl", i+1))
		}
		text, _ := json.Marshal(spec) // no value of this type can fail
		return []string{c.Worker, string(text)}
	})
	if err != nil {
		return nil, err
	}
	defer d.team.Close()
	d.began = time.Now()
	for i := range d.up {
		d.up[i] = d.began
	}
	d.table()
	playing, cancel := context.WithTimeout(ctx, c.Duration)
	defer cancel()
	if err := d.killInTurn(playing); playing.Err() == nil {
		return nil, err
	}
	took := time.Since(d.began)
	if err := d.finish(); err != nil {
		return nil, err
	}
	d.table()
	return d.verdict(took, count)
}

// killInTurn kills servers until ctx ends, or something else is an error.
func (d *demo) killInTurn(ctx context.Context) error {
	for {
		for _, i := range d.random.Perm(servers) {
			pause := 200*time.Millisecond + time.Duration(d.random.Int64N(int64(300*time.Millisecond)))
			if err := d.watch(ctx, pause); err != nil {
				return err
			}
			// Everybody who waits or holds now may have met the last kill.
			if err := d.settle(ctx); err != nil {
				return err
			}
			d.servers.Kill(i)
			d.kills++
			d.lives[i]++
			d.up[i] = time.Time{}
			d.say("killed s%d", i+1)
			if err := d.watch(ctx, 100*time.Millisecond); err != nil {
				return err
			}
			if err := d.servers.Start(i); err != nil {
				return err
			}
			if err := d.servers.Await(ctx, i); err != nil {
				return err
			}
			d.up[i] = time.Now()
			d.say("s%d is back, empty", i+1)
		}
	}
}

// watch lets time pass.
func (d *demo) watch(ctx context.Context, pause time.Duration) error {
	for end := time.Now().Add(pause); time.Now().Before(end); {
		if err := d.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until every worker has ended the round in which it is now.
func (d *demo) settle(ctx context.Context) error {
	now := clock.Now()
	marks := map[int]uint64{}
	for settled := 0; settled < d.Workers; {
		if err := d.next(ctx); err != nil {
			return err
		}
		settled = 0
		for i, r := range d.reports {
			mark, ok := marks[i]
			switch {
			case !ok && r.At > now:
				marks[i] = r.Rounds
			case ok && r.Rounds > mark:
				settled++
			}
		}
	}
	return nil
}

// next takes one report and shows where things stand.
func (d *demo) next(ctx context.Context) error {
	if err := d.take(ctx, fmt.Sprintf("no worker has said anything for %v", patience)); err != nil {
		return err
	}
	if err := d.servers.Err(); err != nil {
		return err
	}
	d.show()
	return nil
}

// take takes one report. A worker that has said its last one may end.
func (d *demo) take(ctx context.Context, silence string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New(silence))
	defer cancel()
	from, r, err := d.team.Next(ctx)
	switch {
	case err == nil:
		d.reports[from] = r
	case ctx.Err() == nil && d.reports[from].Last:
		return nil
	}
	return err
}

// finish has the workers end what they have begun, and takes their last reports.
func (d *demo) finish() error {
	for _, p := range d.team.Members {
		p.In.Close()
	}
	for i := range d.reports {
		for !d.reports[i].Last {
			if err := d.take(context.Background(), "a worker does not end"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *demo) verdict(took time.Duration, count counter) (*Result, error) {
	r := &Result{Servers: servers, Workers: d.Workers, Seed: d.Seed, DurationMS: took.Milliseconds(), Kills: d.kills}
	for _, w := range d.reports {
		r.Expected += w.Counted
		r.LocksLost += w.Lost
		r.Fenced += w.Fenced
		r.Failed += w.Failed
		r.LongestMS = max(r.LongestMS, float64(w.Longest)/float64(time.Millisecond))
		if w.Err != "" {
			r.Error = w.Err
		}
	}
	r.PerS = float64(r.Expected) / took.Seconds()
	var err error
	r.Counted, err = count.read(0)
	r.Lost = int64(r.Expected) - int64(r.Counted)
	return r, err
}
