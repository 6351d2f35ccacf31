package proctest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Mutant is a package with one thing broken: what stands once in a file is something else.
type Mutant struct{ Name, File, From, To string }

// Edit is a mutant.
func Edit(name, file, from, to string) Mutant { return Mutant{name, file, from, to} }

// Noticed: some of the tests of this package with names that match fail where it is broken.
func (m Mutant) Noticed(t *testing.T, tests string) {
	t.Helper()
	text, err := os.ReadFile(m.File)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.From); n != 1 {
		t.Fatalf("%s has %q %d times, want once", m.File, m.From, n)
	}
	dir := t.TempDir()
	mutant, overlay := filepath.Join(dir, m.File), filepath.Join(dir, "overlay.json")
	original, err := filepath.Abs(m.File)
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutant}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		mutant:  strings.Replace(string(text), m.From, m.To, 1),
		overlay: string(replace),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-run", tests, "-timeout", "2m", ".")
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--- FAIL: Test") {
		t.Errorf("nobody noticed: %v\n%s", err, out)
	}
}
