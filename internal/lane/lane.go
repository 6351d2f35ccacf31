// Package lane says how much a run of the tests tries. What takes long belongs to one of three
// lanes, and the environment says which lane runs; a longer one does all that a shorter one does:
//
//	go test ./...                       # quick: after a change, in at most three minutes on two cores
//	TEST_LANE=ci go test ./...     # ci: what a change must pass, with mutants and real processes
//	TEST_LANE=long go test ./...   # long: for nights, with storms and full models
//
// A test that takes long asks for its lane, or tries less and says so:
//
//	lane.CI.Need(t, "three minutes of restarts")
//	if lane.Long.Adds(t, "20 000 worlds") {
//		worlds = 20_000
//	}
package lane

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// Variable is the environment's variable with the name of the lane that runs. It is none of POUNDLOCK_..,
// which are flags of the program that many tests start.
const Variable = "TEST_LANE"

// A Lane is how long a run of the tests may take.
type Lane int

// The three lanes, from the shortest.
const (
	Quick Lane = iota // go test
	CI                // .ci/run
	Long              // make long
)

var names = []string{Quick: "", CI: "ci", Long: "long"}

func (l Lane) String() string { return names[l] }

// Runs says that this run of the tests does what belongs to lane l. It looks at the variable each
// time, inside the tests: go test notes there what a test asks for, and serves no result of another
// lane from its cache. What is asked for before they begin it does not note.
func (l Lane) Runs() bool { return l <= current() }

func current() Lane { return named(os.Getenv(Variable)) }

// named returns the lane called name. One that nobody knows ends the tests, which would
// otherwise pass without having tried what was asked for.
func named(name string) Lane {
	if name == "quick" {
		return Quick
	}
	for l, n := range names {
		if n == name {
			return Lane(l)
		}
	}
	panic(fmt.Sprintf("%s=%q names no lane: want ci or long, or nothing for the quick one", Variable, name))
}

// Need skips the test unless lane l runs. What it does is said with the command that runs it.
func (l Lane) Need(t testing.TB, what string) {
	t.Helper()
	if !l.Runs() {
		t.Skipf("SKIPPED: %s. To run it: %s", what, l.command(t.Name()))
	}
}

// Adds reports whether lane l runs. Otherwise it logs what that lane adds to the test, with the
// command that runs it.
func (l Lane) Adds(t testing.TB, what string) bool {
	t.Helper()
	if !l.Runs() {
		t.Logf("SHORTENED: %s: %s", l.command(t.Name()), what)
	}
	return l.Runs()
}

// Of returns how many of something a test tries in the lane that runs, and logs what the longer ones try.
func Of[N ~int | ~uint64](t testing.TB, what string, quick, ci, long N) N {
	t.Helper()
	many := []N{Quick: quick, CI: ci, Long: long}
	now := current()
	for l := now + 1; l <= Long; l++ {
		if many[l] != many[l-1] {
			t.Logf("SHORTENED to %d %s: with %d: %s", many[now], what, many[l], l.command(t.Name()))
		}
	}
	return many[now]
}

// command runs the test in lane l, from anywhere in the module.
func (l Lane) command(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	dir := "."
	if wd, err := os.Getwd(); err == nil {
		if root, err := root(wd); err == nil {
			if rel, err := filepath.Rel(root, wd); err == nil && rel != "." {
				dir += "/" + filepath.ToSlash(rel)
			}
		}
	}
	limit := ""
	if l == Long {
		limit = "-timeout 0 "
	}
	return fmt.Sprintf("%s=%s go test %s-run '%s' %s", Variable, l, limit, strings.Join(parts, "/"), dir)
}

// Waits is called before the tests of a package that wait most of their time, for leases and other
// processes: several times as many of those that called Parallel run at a time as go test would start,
// one for each core. The flag -parallel of go test says otherwise.
func Waits() {
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
}

// Root returns the directory of the module that the test is in.
func Root() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return root(wd)
}

func root(dir string) (string, error) {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("lane: no go.mod above %s", dir)
		}
	}
}
