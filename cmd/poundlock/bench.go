package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/clock"
	"github.com/poundlock/poundlock/internal/freeaddr"
	"github.com/poundlock/poundlock/verify/history"
)

const benchLong = `Bench measures a cluster with client processes: how long an uncontended Lock
takes, for how long Unlock keeps its caller, and how long it takes from Unlock in
one process until Lock returns in the next. Without --servers it starts a cluster
of server processes on loopback, which ends with it.

With --delay every byte takes that much longer, T, one way, and the times are
printed as multiples of T, too: two are a request and its answer.

With --readers 95 that many percent of the acquires share their lock, as lock --shared
does, and one hands it over to who does not share when the last of them leaves.

It takes the clock of this machine alone, and locks named bench-1, bench-2, ..

Each measurement is judged like any history: poundlock-lab judge says how.

Exit status: 0; 1 when something failed, or the history of the locks is rejected;
64 when it was called wrongly; 69 when no quorum of servers can be reached; 70
when a result cannot be written; 128 + the number of a signal that ended it.`

// benchAnswer is how long a cluster that is said to run may take to answer.
const benchAnswer = 3 * time.Second

// benchFlags are the flags of poundlock bench.
type benchFlags struct {
	cluster  clusterFlags
	n        int
	clients  int
	names    int
	count    int
	duration time.Duration
	delay    time.Duration
	jitter   time.Duration
	readers  int // percent of acquires
	hold     time.Duration
	history  string
	json     bool
	given    bool // --servers, on the command line
}

// A benchResult is what poundlock bench prints. Times are of one machine's clock.
type benchResult struct {
	Servers    int     `json:"servers"`
	Clients    int     `json:"clients"`
	Names      int     `json:"names"`
	DelayMS    float64 `json:"delay_ms"`
	JitterMS   float64 `json:"jitter_ms"`
	Readers    int     `json:"readers_percent"`
	HoldMS     float64 `json:"hold_ms"`
	DurationMS float64 `json:"duration_ms"`

	Acquires  int             `json:"acquires"`
	AcquireMS *load.Quantiles `json:"acquire_ms"`
	AcquireT  *load.Quantiles `json:"acquire_T,omitempty"`
	ReleaseMS *load.Quantiles `json:"release_ms"`
	ReleaseT  *load.Quantiles `json:"release_T,omitempty"`

	BytesPerAcquire float64 `json:"bytes_per_acquire"`
	AcquiresPerS    float64 `json:"acquires_per_s"`
	CPUPerAcquire   float64 `json:"cpu_us_per_acquire,omitempty"`
	CPUOf           string  `json:"cpu_of,omitempty"`

	Handovers     int             `json:"handovers"`
	HandoverMS    *load.Quantiles `json:"handover_ms,omitempty"`
	HandoverT     *load.Quantiles `json:"handover_T,omitempty"`
	HandoversPerS float64         `json:"handovers_per_s"`
	Jain          float64         `json:"jain"`

	Contended *contended `json:"contended,omitempty"`
}

// contended is what the clients did that all wanted one lock, some of them to share it.
type contended struct {
	PerS      float64 `json:"acquires_per_s"`
	Shared    int     `json:"shared"`
	Exclusive int     `json:"exclusive"`
	Together  int     `json:"together"` // inside, at most
}

func benchCommand() *cobra.Command { return new(benchFlags).command() }

func (f *benchFlags) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure acquires, releases and hand-overs of a cluster",
		Long:  benchLong,
		Example: `  poundlock bench
  poundlock bench --delay 20ms
  poundlock bench --clients 1 --names 64 --duration 10s --json`,
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	s := c.Flags()
	f.cluster.register(s)
	s.IntVar(&f.n, "n", 4, "`number` of servers that are started, without --servers")
	s.IntVar(&f.clients, "clients", 9, "`number` of client processes: one holds a lock, the others wait; 1 to 256")
	s.IntVar(&f.names, "names", 1, "`number` of locks whose acquires are counted, all at once; 1 to 10000")
	s.IntVar(&f.count, "count", 200, "`number` of acquires and of hand-overs that are timed, at least; 1 to 1000000")
	s.DurationVar(&f.duration, "duration", 2*time.Second, "how long acquires and hand-overs are counted, at least; 100ms to 1m")
	s.DurationVar(&f.delay, "delay", 0, "one-way delay T between clients and servers, up to 1s")
	s.DurationVar(&f.jitter, "jitter", 0, "at most this much more delay, drawn anew for each read of a connection, up to 1s")
	s.IntVar(&f.readers, "readers", 0, "`percent` of the acquires that share their lock, drawn each time, 0 to 100")
	s.DurationVar(&f.hold, "hold", 0, "how long a client stays inside, up to 1s")
	s.StringVar(&f.history, "history", "", "`file` to write the events of the users to, for poundlock-lab judge")
	s.BoolVar(&f.json, "json", false, "print one JSON object")
	return c
}

// check refuses what cannot be measured.
func (f *benchFlags) check(c *cobra.Command) error {
	if err := cmp.Or(
		cli.Within("--n", f.n, 4, 31),
		cli.Within("--clients", f.clients, 1, 256),
		cli.Within("--names", f.names, 1, 10000),
		cli.Within("--count", f.count, 1, 1000000),
		cli.Within("--duration", f.duration, 100*time.Millisecond, time.Minute),
		cli.Within("--delay", f.delay, 0, time.Second),
		cli.Within("--jitter", f.jitter, 0, time.Second),
		cli.Within("--readers", f.readers, 0, 100),
		cli.Within("--hold", f.hold, 0, time.Second),
	); err != nil {
		return err
	}
	if f.cluster.servers != "" && c.Flags().Changed("n") {
		s := cli.Usagef("--n and --servers exclude each other: the cluster has its number of servers")
		if !f.given {
			s.Hint = "servers stand in the environment or the file: unset POUNDLOCK_SERVERS, or leave --config out, to start some"
		}
		return s
	}
	if f.delay+f.jitter > 0 && f.cluster.tlsName == "" && (f.cluster.tlsCA != "" || f.cluster.tlsCert != "") {
		return cli.Usagef("--delay and --jitter with TLS need --tls-server-name").
			WithHint("the delay is made by proxies on loopback, whose addresses no certificate names")
	}
	return nil
}

func (f *benchFlags) run(c *cobra.Command) error {
	f.given = c.Flags().Changed("servers")
	if err := f.cluster.fill(c); err != nil {
		return err
	}
	if err := f.check(c); err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx := listen(c.Context(), signals)
	err := f.bench(ctx, c)
	if s := ctx.stop(); s != 0 && err != nil {
		return &cli.Status{Code: 128 + int(s)}
	}
	return err
}

// bench measures until ctx ends.
func (f *benchFlags) bench(ctx context.Context, c *cobra.Command) error {
	var out *history.Writer
	if f.history != "" {
		h := history.Header{By: "poundlock bench " + cli.Version(), Clock: clock.Name()}
		file, err := os.Create(f.history)
		if err != nil {
			return cli.Usagef("--history: %w", err)
		}
		defer file.Close()
		if out, err = history.NewWriter(file, h); err != nil {
			return err
		}
	}
	var servers *load.Servers
	if f.cluster.servers == "" {
		addrs, err := freeaddr.Find(f.n)
		if err == nil {
			servers, err = load.StartServers(ctx, addrs,
				tetherName, "serve", "--log-level", "error", "--clock-bound", f.cluster.clockBound.String())
		}
		if err != nil {
			return cli.Exit(cli.ExitError, err)
		}
		defer servers.Close()
		f.cluster.servers = servers.Table
	}
	config, err := f.cluster.config(c)
	if err != nil {
		return err
	}
	if servers == nil { // before the client processes, for the hint
		soon, cancel := context.WithTimeout(ctx, benchAnswer)
		client, err := poundlock.Dial(soon, config)
		cancel()
		if err != nil {
			return f.cluster.explain(err)
		}
		client.Close()
	}
	r, err := f.measure(ctx, c, len(config.Servers), servers, out)
	if err == nil && servers != nil {
		err = servers.Err()
	}
	if err != nil {
		return cli.Exit(cli.ExitError, err)
	}
	if out != nil {
		err = out.End(clock.Now())
	}
	return cli.Exit(cli.ExitInternal, errors.Join(err, f.print(c.OutOrStdout(), r)))
}

func (f *benchFlags) measure(
	ctx context.Context, c *cobra.Command, n int, servers *load.Servers, out *history.Writer,
) (*benchResult, error) {
	var processes []*load.Process
	if servers != nil {
		processes = servers.Processes()
	}
	crew, err := load.StartCrew(ctx, "bench", f.clients, processes, f.clientArgs(c)...)
	if err != nil {
		return nil, err
	}
	defer crew.Close()
	r := &benchResult{
		Servers: n, Clients: f.clients, Names: f.names,
		DelayMS: ms(f.delay), JitterMS: ms(f.jitter), Readers: f.readers, HoldMS: ms(f.hold), DurationMS: ms(f.duration),
	}
	bar := cli.NewProgress()
	defer bar.Finish()
	finished := 0.0
	run := func(what string, l load.Load) (*load.Window, *history.Report, error) {
		const phases = 3
		for i := range l.Users {
			l.Users[i].Shared, l.Users[i].Hold = f.readers, f.hold
		}
		l.Show = func(grants int64, elapsed time.Duration) {
			part := 1.0
			if l.Length > 0 {
				part = min(part, elapsed.Seconds()/l.Length.Seconds())
			}
			if l.Grants > 0 {
				part = min(part, float64(grants)/float64(l.Grants))
			}
			bar.Show("bench: "+what, (finished+part)/phases)
		}
		w, err := crew.Run(ctx, l)
		finished++
		if err == nil && out != nil {
			err = w.Record(out)
		}
		var judged *history.Report
		if err == nil {
			judged = w.Judge()
			err = judged.Err()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", what, err)
		}
		return w, judged, nil
	}
	warmUp := max(500*time.Millisecond, 5*(f.delay+f.jitter))

	alone := load.Load{Users: load.Apart(1, 1), WarmUp: warmUp, Grants: int64(f.count)}
	w, _, err := run("acquire", alone)
	if err != nil {
		return nil, err
	}
	r.Acquires = w.Grants()
	r.AcquireMS, r.ReleaseMS = load.Of(w.Acquires(), time.Millisecond), load.Of(w.Releases(), time.Millisecond)
	r.AcquireT, r.ReleaseT = load.Of(w.Acquires(), f.delay), load.Of(w.Releases(), f.delay)
	r.BytesPerAcquire = w.Traffic

	w, _, err = run("acquires on all names", load.Load{Users: load.Apart(f.names, f.clients), WarmUp: warmUp, Length: f.duration})
	if err != nil {
		return nil, err
	}
	r.AcquiresPerS = w.Rate()
	if w.CPU > 0 {
		r.CPUPerAcquire, r.CPUOf = float64(w.CPU.Microseconds())/float64(w.Grants()), "clients"
		if servers != nil {
			r.CPUOf = "clients and servers"
		}
	}

	if f.clients > 1 {
		l := load.Load{Users: load.Rivals(f.clients, 1), WarmUp: warmUp, Length: f.duration, Grants: int64(f.count) + int64(f.clients)}
		w, judged, err := run("hand-over", l)
		if err != nil {
			return nil, err
		}
		times := w.Handovers()
		r.Handovers, r.HandoversPerS = len(times), float64(len(times))/w.Length.Seconds()
		r.HandoverMS, r.HandoverT = load.Of(times, time.Millisecond), load.Of(times, f.delay)
		r.Jain = w.Jain()
		if f.readers > 0 {
			shared := w.Part(true).Grants()
			r.Contended = &contended{w.Rate(), shared, w.Grants() - shared, judged.Measures.Concurrency.Max}
		}
	}
	return r, nil
}

func (f *benchFlags) print(w io.Writer, r *benchResult) error {
	if f.json {
		return cli.JSON(w, r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	times := func(name string, ms, multiples *load.Quantiles, what string) {
		text := fmt.Sprintf("p50 %.4g  p99 %.4g ms", ms.P50, ms.P99)
		if multiples != nil {
			text += fmt.Sprintf(" = %.3f and %.3f T", multiples.P50, multiples.P99)
		}
		row(name, "%s  (%s)", text, what)
	}
	network := fmt.Sprintf("one-way delay T %v", f.delay)
	if f.jitter > 0 {
		network += fmt.Sprintf(" and up to %v more", f.jitter)
	}
	row("run", "%d servers, %d client %s, %s", r.Servers, r.Clients, cli.Plural(r.Clients, "process"), network)
	times("acquire", r.AcquireMS, r.AcquireT, fmt.Sprintf("%d, uncontended", r.Acquires))
	times("release", r.ReleaseMS, r.ReleaseT, "seen by the caller")
	if r.HandoverMS != nil {
		times("hand-over", r.HandoverMS, r.HandoverT, fmt.Sprintf("%d, %d clients wait", r.Handovers, r.Clients-1))
	}
	row("acquires", "%.4g a second on %d %s", r.AcquiresPerS, r.Names, cli.Plural(r.Names, "name"))
	if r.HandoverMS != nil {
		row("hand-overs", "%.4g a second, Jain's index of the grants %.4f", r.HandoversPerS, r.Jain)
	}
	if c := r.Contended; c != nil {
		row("readers", "%.4g acquires a second of one name: %d shared, %d exclusive, %d inside together at most",
			c.PerS, c.Shared, c.Exclusive, c.Together)
	}
	row("bytes", "%.4g an acquire and release, both ways", r.BytesPerAcquire)
	if r.CPUOf != "" {
		row("processor time", "%.4g us an acquire and release, of %s", r.CPUPerAcquire, r.CPUOf)
	}
	return t.Flush()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
