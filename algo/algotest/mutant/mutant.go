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
	"maps"
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
)

var (
	only   = flag.String("mutant", "", "with TestMutants: run only mutants whose name contains `TEXT`")
	update = flag.Bool("mutant-table", false, "with TestMutants: try all checks in order, and write the table")
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
	// Table is a file that holds what Test found out about each mutant. With it the
	// check that caught a mutant last time comes first, and the others only if it no
	// longer does. Test compares the file with what it finds now; with -mutant-table
	// it tries all checks in order, and writes the file.
	Table string
	// Share makes Test try only each Share-th of the mutants that a check of the Table
	// catches, always the same ones, none that survives, and all that the Table lacks, and
	// compare those with the Table: for a plain test where all are many. 0 and 1: all.
	Share int
	// Patience is how much processor time one mutant may take; beyond it, or beyond
	// ten times as long on the clock, it is caught as endless. Default: 10 s, and at
	// least 20 times what the checks take on the algorithm as written.
	Patience time.Duration

	known map[string]row // of Table
}

// alive is the number of the living mutant in a test binary built by Test, 0: none, and
// aliveName its name. firstCheck is the check that comes first, from 1; 0: they come in order.
const (
	alive      = "POUNDLOCK_MUTANT"
	aliveName  = "POUNDLOCK_MUTANT_NAME"
	firstCheck = "POUNDLOCK_MUTANT_CHECK"
	allowance  = "POUNDLOCK_MUTANT_PATIENCE" // processor time, a duration
)

// Alive is the name of the mutant that the checks of this process look at, "" where they look
// at the algorithm as written: for checks that look at each mutant in a way of its own.
func Alive() string { return os.Getenv(aliveName) }

// An outcome is what the process of one mutant reports.
type outcome struct {
	Fault   string `json:"fault"`
	Check   int    `json:"check"` // that found it, from 1; 0: none
	Err     string `json:"err,omitempty"`
	Reduced bool   `json:"reduced,omitempty"` // found again with reductions

	took time.Duration // on processors
}

// outcomeMark begins the line of standard output with the outcome.
const outcomeMark = "mutant outcome: "

// Test runs every mutant of the package against the checks.
func Test(t *testing.T, c Config) {
	t.Helper()
	if os.Getenv(alive) != "" {
		first, _ := strconv.Atoi(os.Getenv(firstCheck))
		patience, _ := time.ParseDuration(os.Getenv(allowance))
		if err := limit(patience); err != nil {
			t.Fatal(err)
		}
		report(os.Stdout, c.Checks, first)
		return
	}
	if *update {
		c.known = nil
	} else if c.Table != "" {
		known, err := readTable(c.Table)
		if err != nil {
			t.Fatal(err)
		}
		c.known = known
	}
	results, err := c.run(t.Name(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table(results, true))
	logReduced(t, results)
	if *only != "" {
		return
	}
	if c.Share > 1 && !*update {
		fmt.Printf("SHORTENED: %s breaks the algorithm in %d ways, one of %d\n", t.Name(), len(results), c.Share)
		for _, complaint := range compare(results, among(c.known, results)) {
			t.Error(complaint)
		}
		return
	}
	for _, complaint := range judge(results, c.Survivors, c.Needed) {
		t.Error(complaint)
	}
	if c.Table == "" {
		return
	}
	if *update {
		if err := os.WriteFile(c.Table, []byte(table(results, false)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, complaint := range compare(results, c.known) {
		t.Error(complaint)
	}
}

// A result is a mutant and how it was caught, "" when it survived.
type result struct {
	name    string
	fault   string
	check   int  // that caught it, from 1; 0: none
	reduced bool // and that caught it again with reductions
}

// run runs the mutants by means of the package's test called test.
func (c Config) run(test, tmp string) ([]result, error) {
	s, err := mutate(c)
	if err != nil {
		return nil, err
	}
	binary, err := build(s, c.Dir, tmp)
	if err != nil {
		return nil, err
	}
	patience := c.Patience
	if patience == 0 {
		patience = time.Minute
	}
	original := live(binary, c.Dir, test, 0, "", 0, patience)
	if original.Fault != "" || original.Err != "" {
		return nil, fmt.Errorf("mutant: the checks fail on the algorithm as written: %s%s", original.Fault, original.Err)
	}
	if c.Patience == 0 {
		patience = max(10*time.Second, 20*original.took)
	}

	results := make([]result, len(s.names))
	failures := make([]error, len(s.names))
	var group sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, name := range s.names {
		if !strings.Contains(name, *only) || c.passes(i, name) {
			continue
		}
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			o := live(binary, c.Dir, test, i+1, name, c.known[name].check, patience)
			results[i] = result{name, o.Fault, o.Check, o.Reduced}
			if o.Err != "" {
				failures[i] = fmt.Errorf("mutant: %s: %s", name, o.Err)
			}
		})
	}
	group.Wait()
	results = slices.DeleteFunc(results, func(r result) bool { return r.name == "" })
	return results, errors.Join(failures...)
}

// passes says that mutant i is not in the share that is tried: one that is asked for is.
func (c Config) passes(i int, name string) bool {
	w, known := c.known[name]
	return c.Share > 1 && *only == "" && known && (w.check == 0 || i%c.Share > 0)
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

// live runs the checks, check first before the others, in a process in which mutant
// k is alive.
func live(binary, dir, test string, k int, name string, first int, patience time.Duration) outcome {
	cmd := exec.Command(binary, "-test.run=^"+test+"$", "-test.timeout=0")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1",
		alive+"="+strconv.Itoa(k), aliveName+"="+name, firstCheck+"="+strconv.Itoa(first), allowance+"="+patience.String())
	var output, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &complaints
	if err := cmd.Start(); err != nil {
		return outcome{Err: err.Error()}
	}
	overdue := time.AfterFunc(10*patience, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !overdue.Stop() || overran(cmd.ProcessState) {
		return outcome{Fault: fmt.Sprintf("endless: not done after %v", patience), Check: first}
	}
	for line := range strings.Lines(output.String()) {
		if rest, found := strings.CutPrefix(line, outcomeMark); found {
			var o outcome
			if err := json.Unmarshal([]byte(rest), &o); err != nil {
				return outcome{Err: err.Error()}
			}
			o.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			return o
		}
	}
	if err == nil {
		return outcome{Err: "the process ended without an outcome: does the test call mutant.Test, and no subtest?"}
	}
	complaint, _, _ := strings.Cut(strings.TrimSpace(complaints.String()), "\n")
	return outcome{Fault: "crash: " + complaint, Check: first}
}

// report makes the checks, first before the others, and writes the outcome. That a check ran out
// of memory says little about a mutant, so it counts only where no other check says more.
func report(w io.Writer, checks []Check, first int) {
	debug.SetMaxStack(64 << 20) // an endless recursion shall not need a gigabyte to be noticed
	var o outcome
	order := make([]int, 0, len(checks))
	if first >= 1 && first <= len(checks) {
		order = append(order, first)
	}
	for k := range checks {
		if k+1 != first {
			order = append(order, k+1)
		}
	}
	for _, k := range order {
		fault, err := attempt(checks[k-1])
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
	line, _ := json.Marshal(o) // of strings and a number: cannot fail
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

// judge compares the survivors with those that have an argument, and the faults
// with those that are needed.
func judge(results []result, arguments map[string]string, faults []string) (complaints []string) {
	needed := map[string]bool{}
	for _, r := range results {
		argument := strings.TrimSpace(arguments[r.name])
		switch {
		case r.fault != "":
		case argument == "":
			complaints = append(complaints, fmt.Sprintf(
				"mutant survives: %q: strengthen the checks, or state in Survivors why it is harmless", r.name))
		default:
			needed[r.name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if !needed[name] && strings.TrimSpace(arguments[name]) != "" {
			complaints = append(complaints, fmt.Sprintf(
				"Survivors lists %q, which is caught or does not exist: remove it", name))
		}
	}
	for _, f := range faults {
		if !slices.ContainsFunc(results, func(r result) bool { return strings.HasPrefix(r.fault, f) }) {
			complaints = append(complaints, fmt.Sprintf("no mutant is caught by %q: can it fail at all?", f))
		}
	}
	return complaints
}
