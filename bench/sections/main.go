// Command sections measures critical sections over a replicated object, on the real network code
// with links that delay, beside a state machine over etcd's raft library.
//
//	go -C bench/sections run -mod=mod . [--json] costs|throughput|failover|away|snapshot [flags of that]
//
// costs: what entering, operations and leaving take, in units of the delay of a message, and the
// same for a lock and an object in a raft log, whose leader is another process than the one that
// asks. throughput: operations in a second, one at a time, a hundred as one, and many under way, beside etcd's and
// HashiCorp's raft with the same object, in memory and on disk, whose user is at the leader. failover: how long others wait where the owner of a section is killed, and what an operation
// takes whose issuer is suspected by mistake, by one or by all others; a fresh cluster each time. away: a member
// that is cut off for very many operations. snapshot: what others feel while a new life gets a
// large object.
//
// Members reach each other over loopback, through proxies that delay, or without them where nothing does. They are in this process, but
// where one is killed. So do those of HashiCorp's raft; messages of etcd's do not leave this process.
//
// The exit status is 1 when something failed or is not as claimed, 2 when it was called wrongly. It
// is a module of its own, so that nobody who uses poundlock downloads raft libraries.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/poundlock/poundlock/bench/load"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == role {
		end(runMember(os.Args[2]))
	}
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: sections [--json] costs|throughput|failover|away|snapshot [flags]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 || parts[flag.Arg(0)] == nil {
		flag.Usage()
		os.Exit(2)
	}
	t, err := parts[flag.Arg(0)](flag.Args()[1:])
	if err == nil {
		err = t.print(os.Stdout, *asJSON)
	}
	if err == nil && !t.holds() {
		err = fmt.Errorf("something is not as claimed")
	}
	end(err)
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/sections:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

var parts = map[string]func(args []string) (*table, error){
	"costs": costs, "throughput": throughput, "failover": failover, "away": away, "snapshot": snapshot,
}

type table struct {
	Title string `json:"title"`
	Go    string `json:"go"`
	CPUs  int    `json:"cpus"`
	Rows  []row  `json:"rows"`
}

func newTable(format string, args ...any) *table {
	return &table{Title: fmt.Sprintf(format, args...), Go: runtime.Version(), CPUs: runtime.NumCPU()}
}

// A row is one figure, and what is claimed of it.
type row struct {
	What  string  `json:"what"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"` // a median, where there are several
	Least float64 `json:"least,omitempty"`
	Most  float64 `json:"most,omitempty"` // of the claim; 0: nothing is claimed
	Times int     `json:"times"`
	P99   float64 `json:"p99,omitempty"` // or the largest of fewer than 100
}

func (t *table) times(what string, list []time.Duration, unit time.Duration, name string, least, most float64) {
	q := load.Of(list, unit)
	t.Rows = append(t.Rows, row{What: what, Unit: name, Value: q.P50, Least: least, Most: most, Times: len(list), P99: q.P99})
}

func (t *table) value(what string, v float64, unit string, least, most float64) {
	t.Rows = append(t.Rows, row{What: what, Unit: unit, Value: v, Least: least, Most: most, Times: 1})
}

func (t *table) holds() bool {
	return !slices.ContainsFunc(t.Rows, func(r row) bool { return r.Most > 0 && (r.Value < r.Least || r.Value > r.Most) })
}

func (t *table) print(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(t)
	}
	fmt.Fprintf(w, "%s; %s, %d processors\n\n", t.Title, t.Go, t.CPUs)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "what\tmedian\tclaimed\tp99\ttimes")
	for _, r := range t.Rows {
		claimed, p99 := "", ""
		if r.Most > 0 {
			claimed = fmt.Sprintf("%.4g to %.4g", r.Least, r.Most)
		}
		if r.Times > 1 {
			p99 = fmt.Sprintf("%.4g", r.P99)
		}
		fmt.Fprintf(tw, "%s\t%.4g %s\t%s\t%s\t%d\n", r.What, r.Value, r.Unit, claimed, p99, r.Times)
	}
	return tw.Flush()
}
