package algotest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

var update = flag.Bool("golden", false, "with TestGolden: write the runs")

// Golden compares each event of a run with the file testdata/NAME.log, so that a change
// of what the algorithm does is read before it is committed: -golden writes the file.
func Golden[M any](t *testing.T, a protocol.Algorithm[M], name string, c sim.Config) {
	t.Helper()
	var log bytes.Buffer
	c.Trace = &log
	r, err := sim.Run(a, c)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Violations) > 0 {
		t.Errorf("the run has a violation: %s", r.Violations[0])
	}
	path := filepath.Join("testdata", name+".log")
	if *update {
		if err := os.WriteFile(path, log.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test -run %s -golden writes it", err, t.Name())
	}
	got, was := strings.SplitAfter(log.String(), "\n"), strings.SplitAfter(string(want), "\n")
	for i := range max(len(got), len(was)) {
		if i >= len(got) || i >= len(was) || got[i] != was[i] {
			t.Fatalf("%s:%d: the run differs from here: %q was\n%q", path, i+1, was[min(i, len(was)):min(i+1, len(was))], got[min(i, len(got)):min(i+3, len(got))])
		}
	}
}
