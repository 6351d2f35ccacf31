// Package clitest has the tests that every program of package cli passes: its help, its pages,
// and what these say about it.
package clitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
)

// Patience is how long a test waits for what must come at last, on any machine.
const Patience = time.Minute

// RunAsProgram is the variable that makes a test binary the program. It is inherited, so
// that the processes that the program starts are the program too.
const RunAsProgram = "POUNDLOCK_TEST_RUN_AS_PROGRAM"

// Main runs the tests of a program. It makes the test binary that program: for commands of
// its names in a testscript, and for processes that are started with RunAsProgram.
func Main(m *testing.M, run func(args []string) int, names ...string) {
	program := func() { os.Exit(run(os.Args[1:])) }
	if os.Getenv(RunAsProgram) != "" {
		program()
	}
	// The race detector lets every process sleep for a second at its end.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	commands := map[string]func(){}
	for _, name := range names {
		commands[name] = program
	}
	testscript.Main(proctest.Main{Tests: m}, commands)
}

// Command prepares the program with arguments.
func Command(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), RunAsProgram+"=1")
	return c
}

// Scripts runs testdata/*.txt, one file for each behaviour. What a script does behind [!ci] stop, and all of one
// that begins with [!ci] skip, is for lane ci.
func Scripts(t *testing.T, setup func(*testscript.Env) error) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d scripts: %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, files, _ := strings.Cut(string(text), "\n-- ")
		if strings.Contains(files, "\nstdout '") || strings.Contains(files, "\nstderr '") {
			t.Errorf("%s: a line of the script stands among its files, where nobody runs it", path)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Condition: func(name string) (bool, error) {
			if name != lane.CI.String() {
				return false, fmt.Errorf("no condition is called %q", name)
			}
			return lane.CI.Runs(), nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", os.Getenv("GORACE"))
			return setup(env)
		},
	})
}
