package main

import (
	"bytes"
	_ "embed" // the model
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
)

//go:embed ricartagrawala.pml
var model string

// child is the argument with which this program starts itself to explore.
const child = "explore"

// A form is one way to explore the model.
type form struct {
	name    string
	change  func(*check.Config) // nil: Spin
	cores   int
	reduced bool // it need not visit all states
}

var forms = []form{
	{name: "Spin, one core", cores: 1},
	{name: "poundlock, one core", cores: 1, change: func(c *check.Config) { c.Workers = 1 }},
	{name: "poundlock, one core, --exact", cores: 1, change: func(c *check.Config) { c.Workers, c.Exact = 1, true }},
	{name: "poundlock, two workers", cores: 2, change: func(c *check.Config) { c.Workers = 2 }},
	{name: "poundlock, counters shifted", cores: 1, reduced: true, change: func(c *check.Config) {
		c.Workers, c.NoShift = 1, false
	}},
	{name: "poundlock, --reduce order", cores: 1, reduced: true, change: func(c *check.Config) {
		c.Workers, c.Reduce = 1, []string{check.ReduceOrder}
	}},
}

// The claims: the least ratio of a form's rate to Spin's.
const (
	leastOneCore    = 0.6
	leastTwoWorkers = 1
)

// A run is what one form took once.
type run struct {
	States, Transitions int64
	wall, cpu           time.Duration
	bytes               int64 // the largest resident memory
}

// more is how many times the rounds a comparison with slack may take.
const more = 5

// compare runs all forms alternately. With slack it goes on until the best rounds show
// what is claimed.
func compare(entries []int, rounds int, slack float64) (*comparison, error) {
	dir, err := os.MkdirTemp("", "poundlock-spin")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := compile(dir, entries); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &comparison{runs: make([][]run, len(forms))}
	for k := 0; k < rounds || slack < 1 && c.err(slack) != nil && k < more*rounds; k++ {
		for i, f := range forms {
			var r run
			if f.change == nil {
				r, err = measure(f, exec.Command(filepath.Join(dir, "pan"), "-m100000", hashTable(entries)), readSpin)
			} else {
				asked, _ := json.Marshal(job{i, entries}) // numbers only
				r, err = measure(f, exec.Command(self, child, string(asked)), readJSON)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
			c.runs[i] = append(c.runs[i], r)
		}
	}
	return c, nil
}

// hashTable is Spin's option for its table: about as many places as there are states,
// so that it neither waits for long lists nor fills memory that it does not need.
func hashTable(entries []int) string {
	return map[int]string{4: "-w24", 3: "-w18", 2: "-w14"}[sum(entries)]
}

func sum(list []int) (total int) {
	for _, n := range list {
		total += n
	}
	return total
}

// compile makes the program pan in dir.
func compile(dir string, entries []int) error {
	tries := 0
	for i, e := range entries {
		tries |= e << i
	}
	if err := os.WriteFile(filepath.Join(dir, "model.pml"), []byte(model), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"spin", "-a", fmt.Sprintf("-DTRIES=%d", tries), "model.pml"},
		{"gcc", "-O2", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=8000", "-o", "pan", "pan.c"},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}

func measure(f form, cmd *exec.Cmd, read func([]byte) (run, error)) (run, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", f.cores))
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return run{}, fmt.Errorf("%w\n%s", err, out.Bytes())
	}
	r, err := read(out.Bytes())
	r.wall = time.Since(begin)
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.bytes = u.Maxrss << 10
	}
	return r, err
}

var spinLines = regexp.MustCompile(`(?s)errors: 0.* (\d+) states, stored.* (\d+) transitions`)

func readSpin(out []byte) (r run, err error) {
	m := spinLines.FindSubmatch(out)
	if m == nil {
		return r, fmt.Errorf("output without a number of states, or with errors:\n%s", out)
	}
	r.States, _ = strconv.ParseInt(string(m[1]), 10, 64)
	r.Transitions, _ = strconv.ParseInt(string(m[2]), 10, 64)
	return r, nil
}

func readJSON(out []byte) (r run, err error) {
	err = json.Unmarshal(out, &r)
	return r, err
}

type job struct {
	Form    int
	Entries []int
}

// explore is the child: it explores in one form and prints a run.
func explore(asked string) error {
	var j job
	if err := json.Unmarshal([]byte(asked), &j); err != nil || j.Form < 0 || j.Form >= len(forms) || forms[j.Form].change == nil {
		return fmt.Errorf("cannot explore %q", asked)
	}
	v, err := verdict(forms[j.Form], j.Entries)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(run{States: v.States, Transitions: v.Transitions})
}

// verdict explores in one of the checker's forms.
func verdict(f form, entries []int) (check.Verdict, error) {
	// Spin's model has no shifted counters.
	c := check.Config{Config: protocol.Config{N: 4}, Entries: entries, NoShift: true}
	f.change(&c)
	v, err := check.Run(ricartagrawala.Algorithm, c)
	if err == nil && v.Verdict != check.Holds {
		err = fmt.Errorf("%s: %s", v.Verdict, v.Bounds)
	}
	return v, err
}

// A comparison is what all rounds took, by form.
type comparison struct{ runs [][]run }

// rate is distinct states a second: of processor time for one core, else on the
// clock.
func (r run) rate(cores int) float64 {
	t := r.cpu
	if cores > 1 {
		t = r.wall
	}
	return float64(r.States) / max(t.Seconds(), 1e-6)
}

func (c *comparison) median(form int, of func(run) float64) float64 {
	var all []float64
	for _, r := range c.runs[form] {
		all = append(all, of(r))
	}
	return median(all)
}

func median(all []float64) float64 {
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// ratios are those of a form's rates over Spin's, by round.
func (c *comparison) ratios(form int) (all []float64) {
	cores := forms[form].cores
	for k, r := range c.runs[form] {
		all = append(all, r.rate(cores)/c.runs[0][k].rate(cores))
	}
	return all
}

func (c *comparison) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tstates\ttransitions\tseconds\tprocessor seconds\tstates/s\tof Spin's\tbytes/state\t")
	for i, f := range forms {
		r := c.runs[i][0]
		fmt.Fprintf(t, "%s\t%s\t%s\t%.2f\t%.2f\t%s\t%.2f\t%.0f\t\n", f.name, check.Group(r.States), check.Group(r.Transitions),
			c.median(i, func(r run) float64 { return r.wall.Seconds() }),
			c.median(i, func(r run) float64 { return r.cpu.Seconds() }),
			check.Group(int64(c.median(i, func(r run) float64 { return r.rate(f.cores) }))), median(c.ratios(i)),
			c.median(i, func(r run) float64 { return float64(r.bytes) / float64(r.States) }))
	}
	t.Flush()
}

// err says which claim does not hold: in the median round or, with slack, in any.
func (c *comparison) err(slack float64) error {
	spin := c.runs[0][0]
	for i, f := range forms {
		for _, r := range c.runs[i] {
			if f.reduced && r.States >= spin.States || !f.reduced && r.States != spin.States {
				return fmt.Errorf("%s found %d states, Spin %d", f.name, r.States, spin.States)
			}
		}
		least := 0.0
		switch f.name {
		case "poundlock, one core":
			least = leastOneCore
		case "poundlock, two workers":
			least = leastTwoWorkers
		}
		got := median(c.ratios(i))
		if slack < 1 {
			got = slices.Max(c.ratios(i))
		}
		if got < least*slack {
			return fmt.Errorf("%s: %.2f of Spin's states a second, want at least %.2f", f.name, got, least*slack)
		}
	}
	return nil
}
