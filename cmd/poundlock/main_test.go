package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this binary poundlock: for the command of that name in a
// testscript, and for tests that start it with runAsProgram in its environment.
func TestMain(m *testing.M) {
	if os.Getenv(runAsProgram) != "" {
		os.Exit(run(os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){
		"poundlock": main,
	})
}

// runAsProgram is the variable that makes the test binary poundlock. It is
// inherited, so that the processes that poundlock starts are poundlock too.
const runAsProgram = "POUNDLOCK_TEST_RUN_AS_PROGRAM"

// TestScripts runs testdata/*.txt, one file for each behaviour.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata"})
}
