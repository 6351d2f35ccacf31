package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/poundlock/poundlock/internal/cli"
)

// saidViolated is the second line of a counterexample.
var saidViolated = regexp.MustCompile(`(?m)^# (\S+) is violated after (\d+) steps?: `)

// Each counterexample of the laboratory that is committed still violates the property that
// it is said to violate, which makes poundlock-lab replay end with exit status 1.
func TestCounterexamples(t *testing.T) {
	paths, err := filepath.Glob("../../docs/figures/classics-properties/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d counterexamples: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			said := saidViolated.FindStringSubmatch(string(text))
			if said == nil {
				t.Fatal("it does not say what is violated")
			}
			if code, property := replayed(t, path); code != cli.ExitViolated || property != said[1] {
				t.Errorf("exit status %d, violated %q, want %d and %q", code, property, cli.ExitViolated, said[1])
			}
		})
	}
	harmless := filepath.Join(t.TempDir(), "run.txt")
	if err := os.WriteFile(harmless, []byte(twoTries), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, property := replayed(t, harmless); code != 0 || property != "" {
		t.Errorf("a run that violates nothing: exit status %d, violated %q", code, property)
	}
}

// replayed is how poundlock-lab replay ends, and the property that it says is violated.
func replayed(t *testing.T, path string) (code int, property string) {
	t.Helper()
	c := replayCommand()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetArgs([]string{path, "--json"})
	c.SilenceErrors, c.SilenceUsage = true, true
	var exit *cli.Status
	if err := c.Execute(); errors.As(err, &exit) {
		code = exit.Code
	} else if err != nil {
		t.Fatal(err)
	}
	var said replay
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
	if said.Violated != nil {
		property = said.Violated.Property
	}
	return code, property
}
