// Command etcd measures poundlock beside etcd, in one run on one machine: the same
// loops from the same number of client processes and clients, in windows that
// alternate between the systems.
//
//	go -C bench/etcd run -mod=mod . [--rounds 3] [--window 2s] [--slack 1] [--json]
//
// Poundlock runs four server processes, which keep everything in memory; etcd runs
// three, whose locks are concurrency.Mutex of its own client. Every server and every
// client has its defaults, on loopback and without TLS. An etcd server waits for its
// disk, which poundlock does not have: so there is a second etcd cluster whose data
// directories are in memory.
//
// The exit status is 1 when something failed or a ratio is smaller than what is
// claimed, 2 when it was called wrongly. With --slack 0.6 the ratio of the best round
// counts, 0.6 of what is claimed is enough, and up to five times as many rounds are made
// until one shows it: for short windows on a machine that does other things, too.
//
// It is a module of its own, so that nobody who uses poundlock downloads etcd.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/poundlock/poundlock/bench/load"
)

// The roles in which this program is started again.
const (
	poundlockServer = "poundlock-server"
	poundlockClient = "poundlock-client"
	etcdServer      = "etcd-server"
	etcdClient      = "etcd-client"
)

func main() {
	if len(os.Args) > 1 {
		playRole(os.Args[1], os.Args[2:])
	}
	rounds := flag.Int("rounds", 3, "`number` of windows of each load and system; their median counts")
	window := flag.Duration("window", 2*time.Second, "length of one")
	disk := flag.String("disk", os.TempDir(), "`directory` on a disk, for etcd's data")
	memory := flag.String("memory", "/dev/shm", "`directory` in memory, for the data of another etcd cluster; empty: none")
	slack := flag.Float64("slack", 1, "`part` of the claimed ratios that is enough; below 1 in the best round")
	asJSON := flag.Bool("json", false, "print one JSON object")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *rounds > 100 || *window < 100*time.Millisecond || *window > time.Minute ||
		!(*slack > 0 && *slack <= 1) {
		fmt.Fprintln(os.Stderr, "want --rounds from 1 to 100, --window from 100ms to 1m, --slack above 0 and at most 1, and no argument")
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := compare(ctx, *rounds, *window, *slack, *disk, *memory)
	if err == nil {
		err = r.print(os.Stdout, *asJSON)
	}
	if err == nil && !r.within(*slack) {
		err = fmt.Errorf("a ratio is smaller than %g of what is claimed", *slack)
	}
	stop()
	end(err)
}

// playRole returns if role is none.
func playRole(role string, args []string) {
	switch role {
	case poundlockServer:
		end(servePoundlock(args))
	case etcdServer:
		serveEtcd(args)
	case poundlockClient:
		open := func(ctx context.Context) (load.Client, error) { return openPoundlock(ctx, args[0]) }
		end(load.Work(context.Background(), clients, open))
	case etcdClient:
		open := func(context.Context) (load.Client, error) { return openEtcd(args) }
		end(load.Work(context.Background(), clients, open))
	}
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/etcd:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

type result struct {
	Etcd     string `json:"etcd"`
	Go       string `json:"go"`
	CPUs     int    `json:"cpus"`
	Rounds   int    `json:"rounds"`
	WindowMS int64  `json:"window_ms"`
	Rows     []row  `json:"rows"`
	Holds    bool   `json:"holds"` // every ratio is what is claimed
}

// A row is one load: rates in the median round, and the ratios of poundlock's.
type row struct {
	Load    string             `json:"load"`
	Rates   map[string]float64 `json:"per_s"`
	CPU     map[string]float64 `json:"cpu_us"` // processor time of clients and servers for one of them
	Ratios  map[string]float64 `json:"ratio"`
	Best    float64            `json:"best_ratio"` // to etcd on a disk, in one round
	Claimed float64            `json:"claimed"`    // of the ratio to etcd on a disk; 0: nothing
}

// within reports whether every ratio is what is claimed or, with slack, the best one of
// each load is that part of it.
func (r *result) within(slack float64) bool {
	for _, x := range r.Rows {
		ratio := x.Ratios[onDisk]
		if slack < 1 {
			ratio = x.Best
		}
		if ratio < slack*x.Claimed {
			return false
		}
	}
	return true
}

func (r *result) print(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	fmt.Fprintf(w, "etcd %s, %s, %d processors; median of %d windows of %d ms each\n\n",
		r.Etcd, r.Go, r.CPUs, r.Rounds, r.WindowMS)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "a second\tpoundlock\tetcd\tratio\tclaimed\tetcd in memory\tratio\tprocessor time each\n")
	for _, x := range r.Rows {
		claimed := ""
		if x.Claimed > 0 {
			claimed = fmt.Sprintf("%g", x.Claimed)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.1f\t%s", x.Load, x.Rates[ours], x.Rates[onDisk], x.Ratios[onDisk], claimed)
		if rate, ok := x.Rates[inMemory]; ok {
			fmt.Fprintf(t, "\t%.0f\t%.1f", rate, x.Ratios[inMemory])
		} else {
			fmt.Fprint(t, "\t\t")
		}
		fmt.Fprintf(t, "\t%.0f and %.0f us\n", x.CPU[ours], x.CPU[onDisk])
	}
	return t.Flush()
}
