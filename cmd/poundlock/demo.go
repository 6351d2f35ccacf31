package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/clock"
)

const demoLong = `Demo shows what the locks are for. It starts a cluster of four server processes
and some workers, which count in one file under one lock: each reads the number,
waits for a moment and writes the next one, so that two that do so at once lose a
count. Meanwhile it kills the servers with SIGKILL, one after the other, and
starts each again with an empty memory, as often as the cluster is made for: the
next one when everybody who waited for or held the lock at the last kill is done.

At the end it compares what the workers have counted with the number in the file.
^C ends it earlier. It needs nothing and leaves nothing behind.

Exit status: 0 when nothing was lost; 1 when something was, or it could not run;
64 when it was called wrongly; 70 when the result cannot be written.`

// Limits of the flags of poundlock demo.
const (
	demoServers    = 4
	maxDemoWorkers = 64
)

// demoFlags are the flags of poundlock demo.
type demoFlags struct {
	workers  int
	duration time.Duration
	seed     uint64
	unlocked bool
	history  string
	json     bool
}

// A demoResult is the verdict of poundlock demo.
type demoResult struct {
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

func demoCommand() *cobra.Command {
	f := &demoFlags{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Kill servers under a lock and count what is lost: nothing",
		Long:  demoLong,
		Example: `  poundlock demo
  poundlock demo --without-lock`,
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	s := c.Flags()
	s.IntVar(&f.workers, "workers", 8, "`number` of worker processes, 1 to 64")
	s.DurationVar(&f.duration, "duration", 20*time.Second, "how long it goes on, 500ms to 24h")
	s.Uint64Var(&f.seed, "seed", 1, "`number` that the order of the kills and the pauses between them follow from")
	s.BoolVar(&f.unlocked, "without-lock", false, "let the workers count without the lock, to see what is lost then")
	s.StringVar(&f.history, "history", "", "new or empty `directory` for the events of each worker, for poundlock-lab judge")
	s.BoolVar(&f.json, "json", false, "print one JSON object, the verdict, and nothing else")
	return c
}

func (f *demoFlags) run(c *cobra.Command) error {
	switch {
	case f.workers < 1 || f.workers > maxDemoWorkers:
		return cli.Usagef("--workers %d: want 1 to %d", f.workers, maxDemoWorkers)
	case f.duration < 500*time.Millisecond || f.duration > 24*time.Hour:
		return cli.Usagef("--duration %v: want 500ms to 24h", f.duration)
	}
	if f.history != "" {
		if err := emptyDirectory(f.history); err != nil {
			return cli.Usagef("--history: %w", err)
		}
	}
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	r, err := f.play(ctx, c.OutOrStdout())
	if err != nil {
		return &cli.Status{Code: cli.ExitError, Err: fmt.Errorf("demo: %w", err)}
	}
	if err := f.print(c.OutOrStdout(), r); err != nil {
		return &cli.Status{Code: cli.ExitInternal, Err: err}
	}
	if r.Lost != 0 {
		return &cli.Status{Code: cli.ExitViolated}
	}
	return nil
}

// emptyDirectory makes a directory, which may be there if nothing is in it.
func emptyDirectory(path string) error {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	files, err := os.ReadDir(path)
	if err == nil && len(files) > 0 {
		err = fmt.Errorf("%s is not empty: what another run has left would be judged with this one", path)
	}
	return err
}

func (f *demoFlags) print(w io.Writer, r *demoResult) error {
	if f.json {
		return cli.JSON(w, r)
	}
	text := fmt.Sprintf("%d servers killed, %d workers, %.0f sections a second, longest wait %.4g ms\n",
		r.Kills, r.Workers, r.PerS, r.LongestMS)
	if r.LocksLost+r.Fenced+r.Failed > 0 {
		text += fmt.Sprintf("%d locks lost, %d writes refused by the fenced counter, %d other failures %s\n",
			r.LocksLost, r.Fenced, r.Failed, r.Error)
	}
	_, err := fmt.Fprintf(w, "%sexpected %d, counted %d, lost %d\n", text, r.Expected, r.Counted, r.Lost)
	return err
}

// play runs the demo until its time is over or ctx ends.
func (f *demoFlags) play(ctx context.Context, out io.Writer) (*demoResult, error) {
	dir, err := os.MkdirTemp("", "pldemo")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var addrs []string
	for i := range demoServers {
		addrs = append(addrs, "unix:"+filepath.Join(dir, fmt.Sprintf("s%d", i+1)))
	}
	servers, err := load.StartServers(ctx, addrs,
		tetherName, "serve", "--log-level", "error", "--clock-bound", demoClockBound.String())
	if err != nil {
		return nil, err
	}
	defer servers.Close()
	counter := demoCounter{filepath.Join(dir, "counter")}
	crew, err := startDemoCrew(f.workers, servers.Table, counter, f.unlocked, f.history)
	if err != nil {
		return nil, err
	}
	defer crew.close()
	d := &demo{
		demoFlags: f, servers: servers, crew: crew, view: newDemoView(out, f.json),
		random: rand.New(rand.NewPCG(f.seed, 0)), began: time.Now(),
	}
	for i := range d.up {
		d.up[i] = d.began
	}
	playing, cancel := context.WithTimeout(ctx, f.duration)
	defer cancel()
	if err := d.killInTurn(playing); playing.Err() == nil {
		return nil, err
	}
	took := time.Since(d.began)
	if err := crew.finish(); err != nil {
		return nil, err
	}
	d.view.end()
	return d.verdict(took, counter)
}

// A demo is one that runs.
type demo struct {
	*demoFlags
	servers *load.Servers
	crew    *demoCrew
	view    *demoView
	random  *rand.Rand
	began   time.Time
	kills   int
	lives   [demoServers]int
	up      [demoServers]time.Time // zero while it is dead
}

// killInTurn kills servers until ctx ends, or something else is an error.
func (d *demo) killInTurn(ctx context.Context) error {
	for {
		for _, i := range d.random.Perm(demoServers) {
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
			d.view.say(d, "killed s%d", i+1)
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
			d.view.say(d, "s%d is back, empty", i+1)
		}
	}
}

// watch lets time pass.
func (d *demo) watch(ctx context.Context, pause time.Duration) error {
	over := time.After(pause)
	for {
		select {
		case <-over:
			return nil
		default:
		}
		if err := d.next(ctx); err != nil {
			return err
		}
	}
}

// settle waits until every worker has ended the round in which it is now.
func (d *demo) settle(ctx context.Context) error {
	now := clock.Now()
	marks := map[int]uint64{}
	for settled := 0; settled < d.workers; {
		if err := d.next(ctx); err != nil {
			return err
		}
		settled = 0
		for i, r := range d.crew.reports {
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
	if err := d.crew.next(ctx); err != nil {
		return err
	}
	if err := d.servers.Err(); err != nil {
		return err
	}
	d.view.show(d)
	return nil
}

func (d *demo) verdict(took time.Duration, counter demoCounter) (*demoResult, error) {
	r := &demoResult{
		Servers: demoServers, Workers: d.workers, Seed: d.seed, DurationMS: took.Milliseconds(), Kills: d.kills,
	}
	for _, w := range d.crew.reports {
		r.Expected += w.Counted
		r.LocksLost += w.Lost
		r.Fenced += w.Fenced
		r.Failed += w.Failed
		r.LongestMS = max(r.LongestMS, ms(w.Longest))
		if w.Err != "" {
			r.Error = w.Err
		}
	}
	r.PerS = float64(r.Expected) / took.Seconds()
	var err error
	if r.Counted, err = counter.read(0); err != nil {
		return nil, err
	}
	r.Lost = int64(r.Expected) - int64(r.Counted)
	return r, nil
}

// newDemoView shows the table on a terminal, plain lines elsewhere, and nothing when
// only the verdict is wanted.
func newDemoView(out io.Writer, quiet bool) *demoView {
	_, _, terminal := cli.TerminalSize(out)
	return &demoView{out: out, quiet: quiet, terminal: terminal}
}
