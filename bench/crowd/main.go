// Command crowd measures how many clients and locks one machine carries, servers and clients together, and what becomes of
// those who are there while others want too much.
//
//	go run ./bench/crowd idle     [--clients 2000] [--each 0] [--for 30s]
//	go run ./bench/crowd held     [--clients 20] [--locks 100000] [--for 30s]
//	go run ./bench/crowd readers  [--clients 10000] [--few 10] [--for 30s]
//	go run ./bench/crowd overload [--clients 8] [--held 1000] [--times 1,2,4] [--for 30s]
//	go run ./bench/crowd shards   [--clients 1000] [--shards 25] [--few 3] [--for 30s]
//
// idle: clients that hold no lock, or --each of them, and do nothing: what they cost in processor time in the first half of the time, while nobody
// does anything, and in the second half, with acquires beside; whether all sessions and locks last, and how long an acquire beside them takes. held: few clients that hold many locks, and what a lock takes of memory
// at a server and at its client. readers: clients that are all inside one lock, which they share: what that takes of memory at a
// server, and how long an acquire that shares it takes beside a few of them, and beside all. overload: in turns what the machine can do, by clients that ask as soon as they were
// answered, and clients that ask so many times as often, whether they are answered or not, while the first one of
// each process has locks that it holds all the time. An acquire that takes longer than --patience is given up, and does not count.
// shards: clients that acquire something about every second, each in a few of the shards: how many sessions that makes, how long an
// acquire takes that is the first one of its client in a shard, and another one, and whether all sessions end when nothing has been wanted for a while.
//
// Four servers are processes of their own, of shards one of each in every process, and the clients are divided among as many as the limit on open files asks for, at
// least two. All is on loopback, without TLS. An acquire beside is one of a client of this process, --pace times a second.
//
// The exit status is 1 when something failed or is not as claimed, 2 when it was called wrongly. Claims are for two
// cores that do nothing else; --slack 4 is content with four times the time and a quarter of the rate.
// With --profile DIR every process writes a profile of its processor time while it is measured.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// A plan is what one run measures.
type plan struct {
	part     string
	clients  int
	each     int // locks that each client holds
	locks    int // that all hold together; instead of each
	held     int // locks that each process of clients holds under overload
	times    []float64
	length   time.Duration
	lease    time.Duration
	patience time.Duration
	pace     int // acquires beside, a second
	shards   int // 0: the servers are in none
	few      int // shards that each client wants something of; or readers that are a few
	rests    bool
	slack    float64
	profile  string
}

// parts are what may be measured.
var parts = map[string]func(context.Context, plan) (*table, error){"idle": stay, "held": stay, "readers": read, "overload": overload, "shards": visit}

func main() {
	if len(os.Args) > 1 {
		playRole(os.Args[1], os.Args[2:])
	}
	p, asJSON, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench/crowd:", err)
		}
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	t, err := parts[p.part](ctx, p)
	stop()
	if t != nil {
		err = errors.Join(err, t.print(os.Stdout, asJSON))
	}
	if err == nil {
		err = t.wrong(p.slack)
	}
	end(err)
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/crowd:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// parse reads a command line, and names what cannot be.
func parse(args []string, errors io.Writer) (p plan, asJSON bool, err error) {
	if len(args) == 0 || parts[args[0]] == nil {
		return p, false, fmt.Errorf("%q: want idle, held, readers, overload or shards, and then flags", strings.Join(args, " "))
	}
	p.part = args[0]
	usual := map[string]int{"idle": 2000, "held": 20, "readers": 10_000, "overload": 8, "shards": 1000}
	f := flag.NewFlagSet("crowd "+p.part, flag.ContinueOnError)
	f.SetOutput(errors)
	f.IntVar(&p.clients, "clients", usual[p.part], "`number` of clients")
	f.DurationVar(&p.length, "for", 30*time.Second, "how long it is measured; under overload, each of --times")
	f.DurationVar(&p.lease, "lease", 10*time.Second, "of each client")
	f.IntVar(&p.pace, "pace", 20, "`number` of acquires beside in a second")
	f.Float64Var(&p.slack, "slack", 1, "`factor` by which figures may miss what is claimed of them")
	f.StringVar(&p.profile, "profile", "", "`directory` for profiles of processor time")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	times := "1,2,4"
	switch p.part {
	case "idle":
		f.IntVar(&p.each, "each", 0, "`number` of locks that each client holds")
	case "held":
		f.IntVar(&p.locks, "locks", 100_000, "`number` of locks that all clients hold together; one may hold 65536")
	case "readers":
		f.IntVar(&p.few, "few", 10, "`number` of clients that are inside at first")
	case "overload":
		f.IntVar(&p.held, "held", 1000, "`number` of locks that the first client of each process holds throughout")
		f.StringVar(&times, "times", times, "`factors` of what the machine can do that are asked of it, with commas")
		f.DurationVar(&p.patience, "patience", time.Second, "how long an acquire may take that counts")
	case "shards":
		f.IntVar(&p.shards, "shards", 25, "`number` of shards, of four servers each")
		f.IntVar(&p.few, "few", 3, "`number` of shards that each client wants something of")
		f.BoolVar(&p.rests, "rests", true, "wait until clients that want nothing have no session, which takes a minute")
	}
	if err := f.Parse(args[1:]); err != nil {
		return p, false, err
	}
	for text := range strings.SplitSeq(times, ",") {
		k, err := strconv.ParseFloat(text, 64)
		if err != nil || !(k > 0 && k <= 100) {
			return p, false, fmt.Errorf("--times %q: want numbers up to 100, with commas", times)
		}
		p.times = append(p.times, k)
	}
	return p, asJSON, p.wrong(f.Args())
}

func (p plan) wrong(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q: want no argument", rest[0])
	case p.clients < 1 || p.clients > 100_000:
		return fmt.Errorf("--clients %d: want 1 to 100000", p.clients)
	case p.each < 0 || p.each > mostLocks:
		return fmt.Errorf("--each %d: want 0 to %d, which is what one client may hold", p.each, mostLocks)
	case p.locks < 0 || p.locks > p.clients*mostLocks:
		return fmt.Errorf("--locks %d: want 0 to %d, for one client may hold %d", p.locks, p.clients*mostLocks, mostLocks)
	case p.held < 0 || p.held > mostLocks:
		return fmt.Errorf("--held %d: want 0 to %d", p.held, mostLocks)
	case p.length < 100*time.Millisecond || p.length > 24*time.Hour:
		return fmt.Errorf("--for %v: want 100ms to 24h", p.length)
	case p.lease < 100*time.Millisecond || p.lease > 10*time.Minute:
		return fmt.Errorf("--lease %v: want 100ms to 10m", p.lease)
	case p.part == "overload" && (p.patience < time.Millisecond || p.patience > time.Minute):
		return fmt.Errorf("--patience %v: want 1ms to 1m", p.patience)
	case p.part == "shards" && (p.shards < 2 || p.shards > 256):
		return fmt.Errorf("--shards %d: want 2 to 256", p.shards)
	case p.part == "shards" && (p.few < 1 || p.few > p.shards):
		return fmt.Errorf("--few %d: want 1 to %d, which is all", p.few, p.shards)
	case p.part == "readers" && (p.few < 1 || p.few > p.clients):
		return fmt.Errorf("--few %d: want 1 to %d, which is all", p.few, p.clients)
	case p.pace < 1 || p.pace > 1000:
		return fmt.Errorf("--pace %d: want 1 to 1000", p.pace)
	case !(p.slack >= 1 && p.slack <= 1000):
		return fmt.Errorf("--slack %g: want 1 to 1000", p.slack)
	}
	return nil
}

// mostLocks is how many locks one client may hold.
const mostLocks = 65536

// A table is what was measured.
type table struct {
	Title string `json:"title"`
	Go    string `json:"go"`
	CPUs  int    `json:"cpus"`
	Rows  []row  `json:"rows"`
}

// A row is one figure, and what is claimed of it.
type row struct {
	What  string   `json:"what"`
	Value float64  `json:"value"`
	Unit  string   `json:"unit"`
	Least *float64 `json:"least,omitempty"` // of the claim
	Most  *float64 `json:"most,omitempty"`
	Note  string   `json:"note,omitempty"`
}

func newTable(format string, args ...any) *table {
	return &table{Title: fmt.Sprintf(format, args...), Go: runtime.Version(), CPUs: runtime.NumCPU()}
}

func (t *table) value(what string, v float64, unit string) *row {
	t.Rows = append(t.Rows, row{What: what, Value: v, Unit: unit})
	return &t.Rows[len(t.Rows)-1]
}

func (r *row) atMost(v float64) *row {
	r.Most = &v
	return r
}

func (r *row) atLeast(v float64) *row {
	r.Least = &v
	return r
}

// note says more, in words.
func (r *row) note(text string) { r.Note = text }

// claimed says what is claimed of a figure.
func (r row) claimed() string {
	switch {
	case r.Most != nil:
		return "at most " + number(*r.Most)
	case r.Least != nil:
		return "at least " + number(*r.Least)
	}
	return ""
}

// holds reports whether a figure is as claimed, by a factor: which nothing makes of none.
func (r row) holds(slack float64) bool {
	return (r.Most == nil || r.Value <= *r.Most*slack) && (r.Least == nil || r.Value >= *r.Least/slack)
}

// wrong is the first figure that is not as claimed.
func (t *table) wrong(slack float64) error {
	k := slices.IndexFunc(t.Rows, func(r row) bool { return !r.holds(slack) })
	if k < 0 {
		return nil
	}
	r := t.Rows[k]
	return fmt.Errorf("%s: %s, claimed is %s", r.What, strings.TrimSpace(number(r.Value)+" "+r.Unit), r.claimed())
}

// number is v for people: three digits of a fraction, all of what is large.
func number(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func (t *table) print(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(t)
	}
	fmt.Fprintf(w, "%s; %s, %d processors\n\n", t.Title, t.Go, t.CPUs)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range t.Rows {
		fmt.Fprintf(tw, "%s\t%s %s\t%s\n", r.What, number(r.Value), r.Unit, r.claimed())
	}
	err := tw.Flush()
	for _, r := range t.Rows {
		if r.Note != "" {
			fmt.Fprintf(w, "\n%s: %s\n", r.What, r.Note)
		}
	}
	return err
}
