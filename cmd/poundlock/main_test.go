package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/internal/supervise"
)

// TestMain makes this binary poundlock: for the command of that name in a
// testscript, and for tests that start it with runAsProgram in its environment.
func TestMain(m *testing.M) {
	if os.Getenv(runAsProgram) != "" {
		os.Exit(run(os.Args[1:]))
	}
	// The race detector lets every process sleep for a second at its end.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	testscript.Main(proctest.Main{Tests: m}, map[string]func(){
		"poundlock":            main,
		supervise.WatchdogName: main, // as poundlock starts itself
	})
}

// patience is how long a test waits for what must come at last, on any machine.
const patience = time.Minute

// runAsProgram is the variable that makes the test binary poundlock. It is
// inherited, so that the processes that poundlock starts are poundlock too.
const runAsProgram = "POUNDLOCK_TEST_RUN_AS_PROGRAM"

// TestScripts runs testdata/*.txt, one file for each behaviour. Each has a
// development cluster of its own, which ends with it.
func TestScripts(t *testing.T) {
	for _, path := range scripts(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, files, _ := strings.Cut(string(text), "\n-- ")
		if strings.Contains(files, "\nstdout '") || strings.Contains(files, "\nstderr '") {
			t.Errorf("%s: a line of the script stands among its files, where nobody runs it", path)
		}
	}
	figures, err := filepath.Abs("../../docs/figures") // the committed results of the laboratory
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			run := filepath.Join(env.WorkDir, "run")
			env.Setenv("XDG_RUNTIME_DIR", run)
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv("FIGURES", figures)
			env.Defer(func() { endDev(filepath.Join(run, "poundlock")) })
			return os.Mkdir(run, 0o700)
		},
	})
}

func scripts(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d scripts: %v", len(paths), err)
	}
	return paths
}

// endDev kills the development cluster in a directory, if there is one.
func endDev(dir string) {
	text, err := os.ReadFile(filepath.Join(dir, devAlive))
	if err != nil {
		return
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}
