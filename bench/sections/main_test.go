package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == role {
		end(runMember(os.Args[2]))
	}
	os.Exit(proctest.Main{Tests: m}.Run())
}

// Every part runs. The figures of so short runs mean nothing, so that none is judged.
func TestParts(t *testing.T) {
	for name, args := range map[string]string{
		"costs":      "--delay 2ms --n 3 --rounds 2",
		"throughput": "--delays 0,1ms --n 3 --window 100ms",
		"failover":   "--delay 2ms --detector 100ms --n 3 --trials 1",
		"away":       "--operations 3000",
		"snapshot":   "--mib 1",
	} {
		got, err := parts[name](strings.Fields(args))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, asJSON := range []bool{false, true} {
			var b bytes.Buffer
			if err := got.print(&b, asJSON); err != nil || b.Len() == 0 {
				t.Errorf("%s: %v", name, err)
			}
			t.Logf("\n%s", &b)
		}
	}
}

// That most owners are not ejected, or too late, is noticed.
func TestEjections(t *testing.T) {
	soon, late := []time.Duration{time.Millisecond}, []time.Duration{9 * time.Millisecond}
	for _, c := range []struct {
		verdicts
		holds bool
	}{
		{verdicts{ejected: soon}, true},
		{verdicts{ejected: late}, false},
		{verdicts{executed: soon}, false},
		{verdicts{executed: slices.Repeat(soon, 2), ejected: soon}, false},
		{verdicts{executed: soon, ejected: slices.Repeat(soon, 2)}, true},
	} {
		var got table
		if got.ejections(c.verdicts, 8); got.holds() != c.holds {
			t.Errorf("%+v: holds %v, want %v", c.verdicts, got.holds(), c.holds)
		}
	}
}

// What is not as claimed is noticed.
func TestHolds(t *testing.T) {
	for _, r := range []row{{Value: 3, Least: 1, Most: 2}, {Value: 0.5, Least: 1, Most: 2}} {
		if (&table{Rows: []row{{Value: 9}, r}}).holds() {
			t.Errorf("%+v holds", r)
		}
	}
}
