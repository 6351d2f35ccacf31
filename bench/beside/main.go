// Command beside measures poundlock beside other lock services, in one run on one machine:
// the same loops from the same number of client processes and clients, in windows that
// alternate between the systems.
//
//	go -C bench/beside run -mod=mod . [--only cost|exclusive|shared] [--rounds 3] [--window 2s] [--slack 1] [--json]
//
// Poundlock runs four server processes, which keep everything in memory; etcd runs
// three, whose locks are concurrency.Mutex of its own client. Every server and every
// client has its defaults, on loopback and without TLS.
//
// The cost of a lock is the processor time of clients and servers for an acquire and
// release. It is measured beside an echo: four processes that send back frames, as many and
// as large as those that poundlock's clients and servers exchange.
//
// Exclusive locks are measured beside etcd's; beside redsync, which is Redlock, over five
// Redis servers, if redis-server is installed; and beside advisory locks of one PostgreSQL
// server, if initdb and postgres are. An etcd server waits for its disk, which poundlock
// does not have: so there is a second etcd cluster whose data directories are in memory. The
// echo is beside them, too, as the most that clients with frames to four processes can reach.
//
// Readers and writers of poundlock's RWMutex are measured beside etcd's experimental
// recipe; beside PostgreSQL's shared advisory locks; and beside the recipe for shared locks
// on three ZooKeeper servers, if java and Debian's package zookeeper are installed.
//
// What is not installed is skipped, with a line that says so. Every window of clients that
// want one name is judged: somebody inside beside a writer is counted, and an error if it
// is poundlock that let both in.
//
// The exit status is 1 when something failed or a ratio is not what is claimed, 2 when it
// was called wrongly. With --slack 0.6 the ratio of the best round counts, 0.6 of what is
// claimed is enough, and up to five times as many rounds are made until one shows it: for
// short windows on a machine that does other things, too.
//
// It is a module of its own, so that nobody who uses poundlock downloads the others.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/poundlock/poundlock/bench/load"
)

// The roles in which this program is started again.
const (
	poundlockServer = "poundlock-server"
	poundlockClient = "poundlock-client"
	echoServer      = "echo-server"
	echoClient      = "echo-client"
	etcdServer      = "etcd-server"
	etcdClient      = "etcd-client"
	etcdReader      = "etcd-reader"
	redsyncClient   = "redsync-client"
	postgresClient  = "postgres-client"
	zooKeeperClient = "zookeeper-client"
	guestServer     = "guest-server" // above a server that is no Go package
)

// wrong names what cannot be.
func (p plan) wrong() error {
	switch {
	case p.only != "" && !slices.Contains([]string{cost, exclusive, shared}, p.only):
		return fmt.Errorf("--only %q: want cost, exclusive or shared", p.only)
	case p.rounds < 1 || p.rounds > 100:
		return fmt.Errorf("--rounds %d: want 1 to 100", p.rounds)
	case p.window < 100*time.Millisecond || p.window > time.Minute:
		return fmt.Errorf("--window %v: want 100ms to 1m", p.window)
	case !(p.slack > 0 && p.slack <= 1):
		return fmt.Errorf("--slack %g: want more than 0, and at most 1", p.slack)
	}
	return nil
}

func main() {
	if len(os.Args) > 1 {
		playRole(os.Args[1], os.Args[2:])
	}
	var p plan
	flag.StringVar(&p.only, "only", "", "`part`: cost, processor time beside an echo's; exclusive, locks that nobody shares; or shared, those of readers and writers")
	flag.IntVar(&p.rounds, "rounds", 3, "`number` of windows of each load and system; their median counts")
	flag.DurationVar(&p.window, "window", 2*time.Second, "length of one")
	flag.StringVar(&p.disk, "disk", os.TempDir(), "`directory` on a disk, for the data of the others")
	flag.StringVar(&p.memory, "memory", "/dev/shm", "`directory` in memory, for the data of another etcd cluster; empty: none")
	flag.Float64Var(&p.slack, "slack", 1, "`part` of the claimed ratios that is enough; below 1 in the best round")
	asJSON := flag.Bool("json", false, "print one JSON object")
	flag.Parse()
	if err := p.wrong(); err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, cmp.Or(err, fmt.Errorf("%q: want no argument", flag.Arg(0))))
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := compare(ctx, p)
	if err == nil {
		err = r.print(os.Stdout, *asJSON)
	}
	if err == nil {
		for _, c := range r.unmet(p.slack) {
			err = errors.Join(err, c.err(p.slack))
		}
	}
	stop()
	end(err)
}

// playRole returns if role is none.
func playRole(role string, args []string) {
	switch role {
	case poundlockServer:
		load.Tether()
		end(servePoundlock(args))
	case echoServer:
		load.Tether()
		end(serveEcho(args))
	case etcdServer:
		serveEtcd(args)
	case poundlockClient:
		open := func(ctx context.Context) (load.Client, error) { return openPoundlock(ctx, args[0]) }
		end(load.Work(context.Background(), open))
	case echoClient:
		open := func(ctx context.Context) (load.Client, error) { return openEcho(ctx, args[0]) }
		end(load.Work(context.Background(), open))
	case etcdClient:
		open := func(context.Context) (load.Client, error) { return openEtcd(args) }
		end(load.Work(context.Background(), open))
	case etcdReader:
		open := func(context.Context) (load.Client, error) {
			s, err := openEtcd(args)
			return etcdRecipe{s}, err
		}
		end(load.Work(context.Background(), open))
	case redsyncClient:
		open := func(ctx context.Context) (load.Client, error) { return openRedsync(ctx, args) }
		end(load.Work(context.Background(), open))
	case postgresClient:
		open := func(ctx context.Context) (load.Client, error) { return openPostgres(ctx, args[0]) }
		end(load.Work(context.Background(), open))
	case zooKeeperClient:
		open := func(ctx context.Context) (load.Client, error) { return openZooKeeper(ctx, args) }
		end(load.Work(context.Background(), open))
	case guestServer:
		end(serveGuest(args[0], args[1], args[2:]))
	}
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/beside:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

type result struct {
	Etcd     string  `json:"etcd"`
	Go       string  `json:"go"`
	CPUs     int     `json:"cpus"`
	Rounds   int     `json:"rounds"`
	WindowMS int64   `json:"window_ms"`
	Costs    []bill  `json:"costs"`  // processor time
	Rows     []row   `json:"rows"`   // nobody shares
	Shared   []mixed `json:"shared"` // readers and writers
	Claims   []claim `json:"claims"`
	Holds    bool    `json:"holds"` // every ratio is what is claimed
}

// A row is one load: rates in the median round, and the ratios of poundlock's.
type row struct {
	Load   string             `json:"load"`
	Rates  map[string]float64 `json:"per_s"`
	CPU    map[string]float64 `json:"cpu_us"` // processor time of clients and servers for one of them
	Ratios map[string]float64 `json:"ratio"`
}

// unmet are the claims that are not met.
func (r *result) unmet(slack float64) (all []claim) {
	for _, c := range r.Claims {
		if !c.met(slack) {
			all = append(all, c)
		}
	}
	return all
}

// claim is the one about a load and a rival, nil for none.
func (r *result) claim(load, rival string) *claim {
	for k, c := range r.Claims {
		if c.Load == load && c.Rival == rival {
			return &r.Claims[k]
		}
	}
	return nil
}

func (r *result) print(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	fmt.Fprintf(w, "etcd %s, %s, %d processors; median of %d windows of %d ms each\n",
		r.Etcd, r.Go, r.CPUs, r.Rounds, r.WindowMS)
	return errors.Join(r.printCosts(w), r.printExclusive(w), r.printShared(w))
}

func (r *result) printExclusive(w io.Writer) error {
	if len(r.Rows) == 0 {
		return nil
	}
	var rivals []string
	for _, name := range []string{onDisk, redlock, postgres, inMemory, echo} {
		if slices.ContainsFunc(r.Rows, func(x row) bool { return x.Rates[name] > 0 }) {
			rivals = append(rivals, name)
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\na second\tpoundlock")
	for _, name := range rivals {
		fmt.Fprintf(t, "\t%s\ttimes (claimed)", name)
	}
	fmt.Fprintf(t, "\tprocessor time each, and of %s\n", onDisk)
	for _, x := range r.Rows {
		fmt.Fprintf(t, "%s\t%.0f", x.Load, x.Rates[ours])
		for _, name := range rivals {
			c := r.claim(x.Load, name)
			switch ratio, ok := x.Ratios[name]; {
			case !ok:
				fmt.Fprint(t, "\t\t")
			case c == nil:
				fmt.Fprintf(t, "\t%.0f\t%.3g", x.Rates[name], ratio)
			default:
				fmt.Fprintf(t, "\t%.0f\t%.3g (%g)", x.Rates[name], ratio, c.Claimed)
			}
		}
		fmt.Fprintf(t, "\t%.0f and %.0f us\n", x.CPU[ours], x.CPU[onDisk])
	}
	return t.Flush()
}

func (r *result) printShared(w io.Writer) error {
	if len(r.Shared) == 0 {
		return nil
	}
	var b strings.Builder
	line := func(cells ...any) { fmt.Fprintf(&b, "%-12s %14s %13s %16s %16s %7s %9s %6s\n", cells...) }
	times := func(q *load.Quantiles) string {
		if q == nil {
			return "" // nobody
		}
		return fmt.Sprintf("%.2f %7.2f", q.P50, q.P99)
	}
	b.WriteByte('\n')
	line("readers +", "read + write", "times etcd's", "reads wait", "writes wait", "inside", "beside a", "bytes")
	line("writers", "a second", "", "p50, p99 ms", "p50, p99 ms", "at most", "writer", "each")
	for _, x := range r.Shared {
		fmt.Fprintf(&b, "%s: claimed are %g times etcd's\n", x.Load, r.claim(x.Load, onDisk).Claimed)
		for _, s := range x.Systems {
			line("  "+s.System, fmt.Sprintf("%.0f + %-4.0f", s.Readers, s.Writers), fmt.Sprintf("%.1f", s.Ratio),
				times(s.ReadMS), times(s.WriteMS), fmt.Sprint(s.Together), fmt.Sprint(s.Violations), fmt.Sprintf("%.0f", s.Bytes))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
