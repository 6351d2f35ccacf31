package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/verify/workload"
)

type simFlags struct {
	algorithmFlags
	config   sim.Config
	scenario string
	trace    string
	history  string
	on       string
	json     bool
}

type distFlag struct{ *sim.Dist }

func (d distFlag) Set(text string) (err error) { *d.Dist, err = workload.ParseDist(text); return err }
func (d distFlag) Type() string                { return "DIST" }

func simCommand() *cobra.Command {
	f := &simFlags{}
	c := &cobra.Command{
		Use:   "sim ALGORITHM",
		Short: "Run an algorithm in virtual time, or on a network, and measure it",
		Long: `Run an algorithm in virtual time, or on a network, and measure it.

Every process, or every client of a client-server algorithm, thinks, tries,
holds and exits, again and again; first tries are spread evenly over one mean
think time. Equal flags and seeds give equal runs. A DIST is constant:D,
exponential:MEAN, uniform:LO,HI or skewed:LO,HI. With the default delay, milliseconds are hops.

With --on network each process is a node of this program, over TCP on the loopback interface, and
proxies delay what passes between any two of them. The workload is the same as in virtual time; costs are those of
this machine, beside the delays: give these enough, such as --delay constant:20ms. What the simulator
predicts stands below what was measured. What a network does not have is refused. With --on processes
each process is a program of its own, and a crash kills it; its user stays here, behind a pipe.

Exit status: 0 without violations, 1 with, 3 when a run on a network is interrupted, 64 usage, 70 when a
result cannot be written, or this machine has no network.`,
		Example: `  poundlock-lab sim ricart-agrawala -n 10 --think constant:1s
  poundlock-lab sim sigma -n 4 --clients 50 --think constant:0ms \
    --amnesia-every 2s
  poundlock-lab sim maekawa -n 5 --delay constant:20ms --think constant:0ms \
    --entries 20 --on network`,
		Args: oneAlgorithm,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	s := c.Flags()
	f.register(s)
	s.StringVar(&f.scenario, "scenario", "", "`file` of faults at times, such as: at 30ms pause c1 for 10ms")
	s.StringVar(&f.trace, "trace", "", "`file` to write each event to")
	s.StringVar(&f.history, "history", "", "`file` to write the events of the users to, for poundlock-lab judge")
	s.StringVar(&f.on, "on", onSimulator, "`driver` that runs it: simulator, network or processes")
	s.BoolVar(&f.config.Digest, "digest", false, "print the SHA-256 of the run's log")
	s.BoolVar(&f.json, "json", false, "print one JSON object")
	return c
}

// The values of --on.
const (
	onSimulator = "simulator"
	onNetwork   = sim.OnNetwork
	onProcesses = sim.OnProcesses
)

var drivers = []string{onSimulator, onNetwork, onProcesses}

// where is what a report says of a driver.
var where = map[string]string{onNetwork: "a network", onProcesses: "a network, each process a program"}

// register registers the flags that say what a run is, but for files.
func (f *simFlags) register(s *pflag.FlagSet) {
	f.config.Delay, f.config.Think, f.config.Hold = sim.DefaultDelay, sim.DefaultThink, sim.DefaultHold
	f.defaultClients = sim.DefaultClients
	f.algorithmFlags.register(s, fmt.Sprint(sim.DefaultEntries))
	s.Lookup("clients").Usage += fmt.Sprintf(" (default %d there)", sim.DefaultClients)
	s.Uint64Var(&f.config.Seed, "seed", 1, "`number` from which every random number follows")
	s.IntVar(&f.config.Warmup, "warmup", 0, "`number` of entries, the first ones of all users together, that measures leave out")
	s.IntVar(&f.config.Cooldown, "cooldown", 0, "`number` of entries, the last ones of all users together, that measures leave out")
	s.Var(distFlag{&f.config.Delay}, "delay", "of a message, or of an access to a register")
	s.Var(distFlag{&f.config.Think}, "think", "from leaving to the next try")
	s.Var(distFlag{&f.config.Hold}, "hold", "of the critical section")
	s.IntVar(&f.config.Groups, "groups", 0,
		fmt.Sprintf("`number` of groups, where users want groups: 1, 2, ..; each request draws one (default %d there)", sim.DefaultGroups))
	s.Func("popularity", "`ALPHA,BETA`: BETA percent of the requests are for the first ALPHA percent of the groups (default all are alike)",
		func(text string) (err error) { f.config.Popularity, err = popularity(text); return err })
	s.IntVar(&f.config.PerRequest, "per-request", 0, "`number` of groups that a request names, any of which will do (default 1)")
	s.StringArrayVar(&f.sets, "wants", nil,
		"`[USER=]SET` of groups that all users want all the time, or that one does, such as p1=a,b; ! before a group that is exclusive")
	s.Float64Var(&f.config.Downgrade, "downgrade", 0,
		"`probability` that whoever is inside alone in a group such as !r comes down to r, half-way through its hold")
	f.registerOperations(s, "for all, or one for each: N1,N2,.. (default 1 there); --hold begins behind the last one")
	s.Float64Var(&f.config.Bandwidth, "bandwidth", 0,
		"`KBIT_PER_MS`: a message takes as much longer as its integers, of 32 bits each, need; 0: no longer")
	s.Float64Var(&f.config.Loss, "loss", 0, "`probability` that a message is lost; needs --link")
	s.Float64Var(&f.config.Dup, "dup", 0, "`probability` that a message arrives twice; needs --link")
	s.DurationVar(&f.config.AmnesiaEvery, "amnesia-every", 0, "a random server restarts empty, this often")
	s.IntVar(&f.config.Spaced, "spaced", 0,
		"a memory loss of --amnesia-every waits until fewer than this `number` have not been made up for; 0: it does not")
	s.DurationVar(&f.config.CrashEvery, "crash-every", 0, "a random client crashes, this often; a new one goes on. Where there are no clients, a random member")
	s.DurationVar(&f.config.RecoverEvery, "recover-every", 0, "a random member that crashed comes back empty, this often")
	s.DurationVar(&f.config.Detect, "detect", sim.DefaultDetect,
		"how long it takes a member to suspect another one that crashed, or is cut off; 0s: only what the scenario says")
	s.DurationVar(&f.config.Until, "until", 0, "when an election ends; 0: when nothing is left to happen")
	s.DurationVar(&f.config.PauseEvery, "pause-every", 0,
		"a random process pauses, this often, for a random part of this time")
	s.DurationVar(&f.config.PartitionEvery, "partition-every", 0,
		"a random half is cut off, this often, for a random part of this time")
	s.DurationVar(&f.config.FaultsUntil, "faults-until", 0, "no random fault begins after it; 0: they never end")
	s.DurationVar(&f.config.Lease, "lease", sim.DefaultLease, "how long servers keep the locks of a silent client")
	s.DurationVar(&f.config.ClockOffset, "clock-offset", 0, "clocks are off by a random part of this, either way")
	s.Int64Var(&f.config.Patience, "patience", sim.DefaultPatience, "`number` of events without an entry, or the outcome of an operation, after which a run is stuck")
}

func (f *simFlags) run(c *cobra.Command, name string) (err error) {
	e, err := f.find(name)
	if err != nil {
		return err
	}
	i := e.Info()
	s, err := f.read(i)
	if err == nil {
		err = f.config.Use(s)
	}
	if err == nil && f.given("groups") {
		err = cli.AtLeast("--groups", f.config.Groups, 1)
	}
	if err == nil && f.given("per-request") {
		err = cli.AtLeast("--per-request", f.config.PerRequest, 1)
	}
	if err = cmp.Or(err, cli.AtLeast("--patience", f.config.Patience, 1)); err != nil {
		return err
	}
	if f.config.Lease == 0 {
		return cli.Usagef("--lease 0s: want more than 0")
	}
	if f.config.Detect == 0 {
		f.config.Detect = sim.Silent
	} else if !f.given("detect") {
		f.config.Detect = 0 // its default, where members suspect each other
	}
	if f.scenario != "" {
		if f.config.Faults, err = readScenario(f.scenario, f.names(i)); err != nil {
			return err
		}
	}
	err = differ(fileFlag{"--history", f.history}, fileFlag{"--trace", f.trace}, fileFlag{"--scenario", f.scenario})
	if err != nil {
		return err
	}
	if !slices.Contains(drivers, f.on) {
		return cli.Unknown(fmt.Errorf("--on %q: want simulator, network or processes", f.on), f.on, drivers, "")
	}
	if f.on != onSimulator && f.given("channels") && !s.FIFO {
		return cli.Usagef("--channels %s: channels of a network are fifo", f.fifo)
	}
	if f.trace != "" {
		file, err := os.Create(f.trace)
		if err != nil {
			return cli.Usagef("--trace: %w", err)
		}
		defer file.Close()
		f.config.Trace = file
	}
	if f.history != "" {
		file, err := os.Create(f.history)
		if err != nil {
			return cli.Usagef("--history: %w", err)
		}
		defer file.Close()
		header := history.Header{By: "poundlock-lab sim " + cli.Version(), Clock: history.Virtual}
		if f.config.History, err = history.NewWriter(file, header); err != nil {
			return err
		}
	}
	bar := cli.NewProgress()
	if bar != nil {
		f.config.Progress = func(p sim.Progress) {
			text := fmt.Sprintf("%s, %.3g events, %v simulated", name, float64(p.Events), p.Now.Round(time.Millisecond))
			if f.on != onSimulator {
				text = fmt.Sprintf("%s, %v on a network", name, p.Now.Round(time.Second))
			}
			bar.Show(text, float64(p.Entries)/float64(max(1, p.Total)))
		}
	}
	r, err := f.drive(c, e)
	bar.Finish()
	if errors.Is(err, sim.ErrConfig) {
		return refused(err)
	}
	if errors.Is(err, context.Canceled) {
		return &cli.Status{Code: cli.ExitUndecided, Err: errors.New("interrupted")}
	}
	if err != nil {
		return cli.Exit(cli.ExitInternal, err)
	}
	return ended(f.print(c.OutOrStdout(), r), r.ViolationCount > 0)
}

// drive runs it with the driver that is asked for.
func (f *simFlags) drive(c *cobra.Command, e catalog.Entry) (r sim.Result, err error) {
	if f.on == onSimulator {
		return e.Simulate(f.config)
	}
	var program func() *exec.Cmd
	if f.on == onProcesses {
		self, err := os.Executable()
		if err != nil {
			return r, err
		}
		i := e.Info()
		program = func() *exec.Cmd { return exec.Command(self, "process", i.Name, "--variant="+i.Variant) }
	}
	ctx, stop := interruptible(c)
	defer stop()
	if r, err = e.OnProcesses(ctx, f.config, program); err == nil {
		r.Predicted, err = predict(e, f.config)
	}
	return r, err
}

// processCommand is what a process of a run is as a program of its own.
func processCommand() *cobra.Command {
	var variant string
	c := &cobra.Command{
		Use: "process ALGORITHM", Short: "Be a process of poundlock-lab sim --on processes", Hidden: true, Args: oneAlgorithm,
		RunE: func(c *cobra.Command, args []string) error {
			e := catalog.Find(args[0], variant)
			if e == nil {
				return cli.Usagef("no algorithm is called %q with --variant %q", args[0], variant)
			}
			// An interrupt of a terminal is for the program that drives this one.
			signal.Ignore(os.Interrupt)
			return e.Process(c.InOrStdin(), c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&variant, "variant", "", "of the algorithm")
	return c
}

// predict is what the simulator says of a run on a network.
func predict(e catalog.Entry, c sim.Config) (*sim.Prediction, error) {
	c.History, c.Progress = nil, nil
	r, err := e.Simulate(c.ByNodes(e.Info()))
	return &sim.Prediction{
		MessagesPerEntry: r.MessagesPerEntry, Waiting: r.Waiting, Response: r.Response, SyncDelay: r.SyncDelay, Throughput: r.Throughput,
	}, err
}

func popularity(text string) (p sim.Popularity, err error) {
	alpha, beta, two := strings.Cut(text, ",")
	p.Alpha, err = strconv.ParseFloat(alpha, 64)
	if err == nil {
		p.Beta, err = strconv.ParseFloat(beta, 64)
	}
	if !two || err != nil || p == (sim.Popularity{}) {
		return p, errors.New("want two percentages, such as 20,80: 80% of the requests are for 20% of the groups")
	}
	return p, nil
}

// mostText is the size of a scenario that nobody writes.
const mostText = 64 << 20

func readText(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostText+1))
	if err == nil && len(text) > mostText {
		err = fmt.Errorf("%s: longer than %d MiB", path, mostText>>20)
	}
	return text, err
}

func readScenario(path string, names scenario.Names) ([]scenario.Step, error) {
	text, err := readText(path)
	if err != nil {
		return nil, cli.Usagef("--scenario: %w", err)
	}
	steps, err := names.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, cli.Usagef("--scenario %s: %w", path, err)
	}
	return steps, nil
}

func (f *simFlags) print(w io.Writer, r sim.Result) error {
	if f.json {
		return cli.JSON(w, r)
	}
	l := newListing(w, len("integers a message "))
	form, system := r.Algorithm, fmt.Sprintf("n=%d", r.N)
	if r.Variant != "" {
		form += " (" + r.Variant + ")"
	}
	if r.Clients > 0 {
		system += fmt.Sprintf(" clients=%d", r.Clients)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Options)) {
		system += " " + name + "=" + r.Options[name]
	}
	l.row("run", "%s %s seed=%d", form, system, r.Seed)
	l.rowIf(r.LeadersNamed > 0, "leaders named", "%d times, %d epochs", r.LeadersNamed, r.Epochs)
	if k := len(r.Leaders); k > 0 && k == r.LeadersNamed {
		last := r.Leaders[k-1]
		l.row("", "%s says last that %s leads epoch %d, at %v", last.Process, last.Leader, last.Epoch, time.Duration(last.AtNS))
	}
	l.row("entries", "%d", r.Entries)
	d := r.Discarded
	l.rowIf(d != sim.Discarded{}, "", "measured from %.4gs to %.4gs; discarded: the first %d and the last %d",
		d.FromS, d.UntilS, d.Warmup, d.Cooldown)
	l.rowIf(r.Downgrades > 0, "", "%d of them came down to a group", r.Downgrades)
	l.rowIf(r.GaveUp+r.Ejected > 0, "", "%d tries gave up, %d critical sections were lost", r.GaveUp, r.Ejected)
	for _, why := range slices.Sorted(maps.Keys(r.GaveUpReasons)) {
		l.row("", "%d were told: %s", r.GaveUpReasons[why], why)
	}
	faults := fmt.Sprintf("%d memory losses, %d crashes", r.Amnesias, r.Crashes)
	if r.Recoveries > 0 {
		faults += fmt.Sprintf(", %d recoveries", r.Recoveries)
	}
	l.rowIf(r.Amnesias+r.Crashes > 0, "faults", "%s", faults)
	l.rowIf(r.LeasesLapsed > 0, "leases lapsed", "%d, of members at each other", r.LeasesLapsed)
	l.rowIf(r.Accesses > 0, "accesses", "%d, %.4g an entry", r.Accesses, r.AccessesPerEntry)
	l.rowIf(r.Accesses == 0, "messages", "%d, %.4g an entry, and %d overhead", r.Messages, r.MessagesPerEntry, r.OverheadMessages)
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(r.MessagesByKind)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", k, r.MessagesByKind[k]))
	}
	if kinds != nil {
		l.list("", strings.Join(kinds, ", "))
	}
	l.rowIf(r.Lost+r.Duplicated+r.Retransmitted > 0, "channels", "%d messages lost, %d duplicated, %d sent again",
		r.Lost, r.Duplicated, r.Retransmitted)
	p := cmp.Or(r.Predicted, new(sim.Prediction))
	l.rowIf(r.Predicted != nil, "", "predicted: %.4g an entry", p.MessagesPerEntry)
	l.rowIf(r.On == "", "integers a message", "%.4g", r.IntegersPerMessage)
	summary := func(name string, s, predicted history.Summary) {
		l.rowIf(s.Count == 0, name, "none")
		l.rowIf(s.Count > 0, name, "mean %.4g  p50 %.4g  p99 %.4g  max %.4g ms", s.Mean, s.P50, s.P99, s.Max)
		l.rowIf(predicted.Count > 0, "", "predicted: mean %.4g ms", predicted.Mean)
	}
	summary("waiting", r.Waiting, p.Waiting)
	summary("response", r.Response, p.Response)
	summary("sync delay", r.SyncDelay, p.SyncDelay)
	if r.OutcomeMS.Count > 0 {
		summary("outcome", r.OutcomeMS, history.Summary{})
	}
	l.row("throughput", "%.4g entries/s", r.Throughput)
	l.rowIf(r.Predicted != nil, "", "predicted: %.4g entries/s", p.Throughput)
	if r.Sessions > 0 {
		l.rowIf(r.Throughput90 > 0, "", "%.4g entries/s until 90%% were made", r.Throughput90)
		l.row("sessions", "%d, %.4g entries each", r.Sessions, float64(r.Entries)/float64(r.Sessions))
		l.row("concurrency", "mean %.4g  max %d inside together", r.Concurrency.Mean, r.Concurrency.Max)
	}
	l.row("Jain's index", "%.4f", r.Jain)
	l.row("max bypass", "%d", r.MaxBypass)
	l.rowIf(r.FencedEntries > 0, "slow path", "%.4g%% of %d grants past the first 6 clock bounds", 100*r.SlowPathShare, r.FencedEntries)
	l.rowIf(r.On == "", "events", "%d, %.3g a second", r.Events, r.EventsPerS)
	l.rowIf(r.On != "", "ran on", "%s, for %.4gs", where[r.On], r.VirtualSeconds)
	l.rowIf(r.LogSHA256 != "", "log", "sha256 %s", r.LogSHA256)
	l.row("violations", "%d", r.ViolationCount)
	for _, v := range r.Violations {
		l.row("", "%s", v)
	}
	more := r.ViolationCount - uint64(len(r.Violations))
	l.rowIf(more > 0, "", "and %d more", more)
	return l.Flush()
}
