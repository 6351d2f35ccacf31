// Package mutant tests tests: it breaks an algorithm in one place at a time and
// asks whether its checks notice.
//
// The obvious way, to edit the source and run the tests once for each edit,
// pays for a build each time. Here all mutants of a package are compiled into
// one test binary, and an environment variable says which one is alive:
//
//	if p.section == InCrit || first {                      // as written
//	if cond(7, 8, func() bool { return p.section == ... }) // as compiled
//
// The mutated files exist only as an overlay of that build, so the algorithm
// itself holds no hook and pays nothing. Each mutant runs in a process of its
// own: one that loops for ever, or exhausts its stack, harms nobody else.
//
// What is mutated: each condition of an if, a case without tag and each other
// comparison or logical value becomes true, then false; a loop's condition
// becomes false; each operand of && and || is dropped. Edits that are no guard
// ("forget to clear the queue") are given as Replacements.
//
// A mutant that no check catches is a survivor. A survivor is either a hole in
// the checks or has a reason to be harmless, which the test must then state.
package mutant

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/lane"
)

var (
	only   = flag.String("mutant", "", "with TestMutants: run only mutants whose name contains `TEXT`")
	tables = flag.String("mutant-table", "", "with TestMutants: try all checks in order, and write the table into `DIR`")
)

// A Check examines an algorithm. It returns what fell and how that was found, such
// as "exclusion by check, 10 steps", or "" when it found no fault. A panic is a fault
// too. An error says that the check itself could not be made.
type Check func() (fault string, err error)

// A Replacement is a mutant that is no guard: Old becomes New. Old must stand
// exactly once in the package, inside one function. Replacements of one name, in
// different functions, are one mutant; two in one function are refused.
type Replacement struct {
	Name     string // what the mutant forgets or confuses
	Old, New string
}

// Edit returns the mutant called name, which has text in place of old.
func Edit(name, old, text string) Replacement { return Replacement{Name: name, Old: old, New: text} }

// Config says how to mutate and how to check.
type Config struct {
	// Dir is the directory of the package; "" is the working directory of a
	// test, which is that of its own package.
	Dir string
	// Checks are tried in order until one finds a fault: cheap ones first.
	Checks []Check
	// Replace lists mutants beyond the guards.
	Replace []Replacement
	// Outside lists functions that are not part of the machine, such as the
	// properties that the checks use, each with the reason. The name of a type
	// stands for all its methods: a package with two machines has a test for each.
	Outside map[string]string
	// Inside, if not empty, lists the only functions to mutate, or types whose methods
	// are: the machine is a part of a larger package.
	Inside []string
	// Survivors maps the name of a mutant that no check catches to the argument
	// why it is harmless or out of reach. A mutant that survives without one
	// fails the test, and so does an entry that no survivor needs.
	Survivors map[string]string
	// Needed lists how faults begin that at least one mutant must be caught by,
	// such as the names of properties: one that nothing violates shows nothing.
	Needed []string
	// Share makes Test try only each Share-th of the mutants, always the same ones, and none that
	// survives, except in lane long: where all are many. 0 and 1: all.
	Share int
	// Lane is the shortest one that tries the mutants, others only count them. Default: lane.CI.
	Lane lane.Lane
	// Patience is how much processor time one mutant may take; beyond it, or beyond
	// ten times as long on the clock, it is caught as endless. Default: 4 s, and at
	// least 20 times what the checks take on the algorithm as written.
	Patience time.Duration
}

// The environment of a test binary built by Test: the number of the living mutant, 0 for none, and its task in JSON.
const (
	alive    = "POUNDLOCK_MUTANT"
	taskName = "POUNDLOCK_MUTANT_TASK"
)

// A task is what the process of one mutant is to do.
type task struct {
	Name     string        // of the mutant
	Checks   []int         // to make in this order, from 1; nil: all as listed
	Patience time.Duration // on processors
}

// own is the task of this process.
var own task

// Alive is the name of the mutant that the checks of this process look at, "" where they look
// at the algorithm as written: for checks that look at each mutant in a way of its own.
func Alive() string { return own.Name }

// An outcome is what the process of one mutant reports.
type outcome struct {
	Fault   string          `json:"fault"`
	Check   int             `json:"check"` // that found it, from 1; 0: none
	Err     string          `json:"err,omitempty"`
	Reduced bool            `json:"reduced,omitempty"` // found again with reductions
	Took    []time.Duration `json:"took"`              // each check, 0 where it was not asked

	took time.Duration // on processors
}

// outcomeMark begins the line of standard output with the outcome, and startMark a line with
// the number of a check that begins.
const (
	outcomeMark = "mutant outcome: "
	startMark   = "mutant check: "
)

// Test runs every mutant of the package against the checks. docs/verification.md has a row with
// how many there are and how many survive, which Test holds equal also where it tries none of them.
func Test(t *testing.T, c Config) {
	t.Helper()
	if os.Getenv(alive) != "" {
		if err := json.Unmarshal([]byte(os.Getenv(taskName)), &own); err != nil {
			t.Fatal(err)
		}
		if err := limit(own.Patience); err != nil {
			t.Fatal(err)
		}
		report(os.Stdout, c.Checks, own.Checks)
		return
	}
	if lane.Long.Runs() {
		c.Share = 1
	}
	s, err := mutate(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range recorded(t.Name(), s.names, c.Survivors) {
		t.Error(complaint)
	}
	if *only == "" && *tables == "" {
		max(c.Lane, lane.CI).Need(t, fmt.Sprintf("this breaks the algorithm in %d ways, and asks who notices", len(s.names)))
	}
	results, err := c.run(s, t.Name(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table(results, true))
	logReduced(t, results)
	if *only != "" {
		return
	}
	if c.Share > 1 && *tables == "" {
		t.Logf("SHORTENED: it is broken in one of %d ways: %s", c.Share, summary(results))
		c.Needed = nil
	}
	for _, complaint := range judge(results, c.Survivors, c.Needed) {
		t.Error(complaint)
	}
	if *tables != "" {
		path := filepath.Join(*tables, strings.ReplaceAll(place(), "/", "-")+"-"+t.Name()+".txt")
		if err := os.WriteFile(path, []byte(table(results, false)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// place is the directory of the package in the module, such as "algo/maekawa".
func place() string {
	wd, _ := os.Getwd()
	root, _ := lane.Root()
	rel, err := filepath.Rel(root, wd)
	if err != nil {
		return filepath.Base(wd)
	}
	return filepath.ToSlash(rel)
}

// A result is a mutant and how it was caught, "" when it survived.
type result struct {
	name    string
	fault   string
	check   int  // that caught it, from 1; 0: none
	reduced bool // and that caught it again with reductions
}

// run runs the mutants s by means of the package's test called test.
func (c Config) run(s *schemata, test, tmp string) ([]result, error) {
	binary, err := build(s, c.Dir, tmp)
	if err != nil {
		return nil, err
	}
	patience := c.Patience
	if patience == 0 {
		patience = time.Minute
	}
	original := live(binary, c.Dir, test, 0, task{Patience: patience})
	if original.Fault != "" || original.Err != "" {
		return nil, fmt.Errorf("mutant: the checks fail on the algorithm as written: %s%s", original.Fault, original.Err)
	}
	if c.Patience == 0 {
		patience = max(4*time.Second, 20*original.took)
	}

	results := make([]result, len(s.names))
	failures := make([]error, len(s.names))
	inOrder := asListed(len(original.Took))
	learned := newOdds(original.Took)
	// try tries the mutants of a list, as many at once as there are processors, each with the
	// checks in the order that it is given: nil ends the list.
	try := func(list []int, order func(name string) []int) {
		var group sync.WaitGroup
		var mutex sync.Mutex // of learned, results and failures
		free := make(chan struct{}, runtime.GOMAXPROCS(0))
		for _, i := range list {
			free <- struct{}{}
			name := s.names[i]
			mutex.Lock()
			checks := order(name)
			mutex.Unlock()
			if checks == nil {
				break
			}
			group.Go(func() {
				defer func() { <-free }()
				o := live(binary, c.Dir, test, i+1, task{name, checks, patience})
				mutex.Lock()
				defer mutex.Unlock()
				learned.note(name, o.Check)
				results[i] = result{name, o.Fault, o.Check, o.Reduced}
				if o.Err != "" {
					failures[i] = fmt.Errorf("mutant: %s: %s", name, o.Err)
				}
			})
		}
		group.Wait()
	}

	var chosen []int
	for i, name := range s.names {
		if strings.Contains(name, *only) && !c.passes(i, name) {
			chosen = append(chosen, i)
		}
	}
	try(chosen, func(name string) []int {
		if *tables != "" {
			return inOrder
		}
		return learned.order(name)
	})
	if len(chosen) == len(s.names) { // a fault that is needed may have come later than another one
		try(chosen, func(string) []int {
			if len(unseen(results, c.Needed)) == 0 {
				return nil
			}
			return inOrder
		})
	}
	results = slices.DeleteFunc(results, func(r result) bool { return r.name == "" })
	return results, errors.Join(failures...)
}

// passes says that mutant i is not in the share that is tried: one that is asked for is.
func (c Config) passes(i int, name string) bool {
	_, survives := c.Survivors[name]
	return c.Share > 1 && *only == "" && *tables == "" && (survives || i%c.Share > 0)
}

// build compiles the test binary of the package with the mutated files in place
// of its own.
func build(s *schemata, dir, tmp string) (binary string, err error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range s.files {
		copied := filepath.Join(tmp, filepath.Base(path))
		if err := os.WriteFile(copied, text, 0o600); err != nil {
			return "", fmt.Errorf("mutant: %w", err)
		}
		overlay.Replace[path] = copied
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", fmt.Errorf("mutant: %w", err)
	}
	listed := filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(listed, list, 0o600); err != nil {
		return "", fmt.Errorf("mutant: %w", err)
	}
	binary = filepath.Join(tmp, "mutants.test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay="+listed, "-o", binary, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mutant: building the mutants: %w\n%s", err, out)
	}
	return binary, nil
}

// live runs the checks in a process in which mutant k is alive.
func live(binary, dir, test string, k int, do task) outcome {
	told, _ := json.Marshal(do) // of strings and numbers: cannot fail
	cmd := exec.Command(binary, "-test.run=^"+test+"$", "-test.timeout=0")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", alive+"="+strconv.Itoa(k), taskName+"="+string(told))
	var output, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &complaints
	if err := cmd.Start(); err != nil {
		return outcome{Err: err.Error()}
	}
	overdue := time.AfterFunc(10*do.Patience, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	late := !overdue.Stop() || overran(cmd.ProcessState)
	check := 0
	for line := range strings.Lines(output.String()) {
		if rest, found := strings.CutPrefix(line, startMark); found {
			check, _ = strconv.Atoi(strings.TrimSpace(rest))
		}
		if rest, found := strings.CutPrefix(line, outcomeMark); found && !late {
			var o outcome
			if err := json.Unmarshal([]byte(rest), &o); err != nil {
				return outcome{Err: err.Error()}
			}
			o.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			return o
		}
	}
	if late {
		return outcome{Fault: fmt.Sprintf("endless: not done after %v", do.Patience), Check: check}
	}
	if err == nil {
		return outcome{Err: "the process ended without an outcome: does the test call mutant.Test, and no subtest?"}
	}
	complaint, _, _ := strings.Cut(strings.TrimSpace(complaints.String()), "\n")
	return outcome{Fault: "crash: " + complaint, Check: check}
}

// asListed are the numbers of so many checks.
func asListed(checks int) (order []int) {
	for k := range checks {
		order = append(order, k+1)
	}
	return order
}

// report makes the checks in an order and writes the outcome. That a check ran out of memory says
// little about a mutant, so it counts only where no other check says more.
func report(w io.Writer, checks []Check, order []int) {
	debug.SetMaxStack(64 << 20) // an endless recursion shall not need a gigabyte to be noticed
	o := outcome{Took: make([]time.Duration, len(checks))}
	if order == nil {
		order = asListed(len(checks))
	}
	for _, k := range order {
		fmt.Fprintf(w, "%s%d\n", startMark, k)
		begun := time.Now()
		fault, err := attempt(checks[k-1])
		o.Took[k-1] = time.Since(begun)
		if err != nil {
			o.Err = err.Error()
			break
		}
		if fault == "" || o.Fault != "" && strings.HasPrefix(fault, undecided) {
			continue
		}
		o.Fault, o.Check = fault, k
		if !strings.HasPrefix(fault, undecided) {
			break
		}
	}
	o.Reduced = compared
	line, _ := json.Marshal(o) // of strings and numbers: cannot fail
	fmt.Fprintf(w, "%s%s\n", outcomeMark, line)
}

func attempt(check Check) (fault string, err error) {
	defer func() {
		if r := recover(); r != nil {
			fault, err = fmt.Sprint("panic: ", r), nil
		}
	}()
	return check()
}

// judge compares the survivors among the results with those that have an argument, and the faults
// with those that are needed.
func judge(results []result, arguments map[string]string, faults []string) (complaints []string) {
	for _, r := range results {
		switch _, argued := arguments[r.name]; {
		case r.fault == "" && !argued:
			complaints = append(complaints, fmt.Sprintf(
				"mutant survives: %q: strengthen the checks, or state in Survivors why it is harmless", r.name))
		case r.fault != "" && argued:
			complaints = append(complaints, fmt.Sprintf("Survivors lists %q, which is caught: remove it", r.name))
		}
	}
	for _, f := range unseen(results, faults) {
		complaints = append(complaints, fmt.Sprintf("no mutant is caught by %q: can it fail at all?", f))
	}
	return complaints
}

// unseen are those faults that caught no mutant.
func unseen(results []result, faults []string) (missing []string) {
	for _, f := range faults {
		if !slices.ContainsFunc(results, func(r result) bool { return strings.HasPrefix(r.fault, f) }) {
			missing = append(missing, f)
		}
	}
	return missing
}
