package api

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/lane"
)

// TestLeaseMutants: the stories of TestLeases notice when what they are about is
// broken. Without TEST_LANE=long only some are built.
func TestLeaseMutants(t *testing.T) {
	lane.CI.Need(t, "each of these is a build")
	t.Parallel()
	mutants := []struct{ name, file, from, to string }{
		{"the lease does not run", "session.go", "x.timer.Reset(x.lease)", ""},
		{"calls do not renew", "session.go", "x.expires = time.Now().Add(x.lease)\n\t\tx.timer.Reset(x.lease)", "x.timer.Reset(time.Until(x.expires))"},
		{"a stream does not keep the session", "session.go", "x.open == 0 && ", ""},
		{"a cut stream ends the session", "session.go", "x.timer.Reset(x.lease)", "x.timer.Reset(0)\n\t\tx.expires = time.Now()"},
		{"the first of two streams that ends is the last", "session.go", "x.open--", "x.open = 0"},
		{"the end of the lease frees nothing", "session.go", "for g, c := range sections {\n\t\ts.unlock(g, c)\n\t}", ""},
		{"promises ignore the lease", "promise.go", "min(g.session.lease, end.Sub(now))", "end.Sub(now)"},
		{"promises ignore the cluster", "promise.go", "min(g.session.lease, end.Sub(now))", "min(g.session.lease, end.Sub(now)+time.Hour)"},
		{"a lost lock is left at once", "release.go", "time.Until(g.promised)", "time.Duration(0)"},
		{"a lost lock is never left", "release.go", "time.Until(g.promised)", "1000*time.Hour"},
		{"shutting down breaks promises", "shutdown.go", "err := s.keepPromises(ctx)", "var err error"},
		{"shutting down does not wait for what is being given back", "shutdown.go", "s.running.Wait()", ""},
		{"a repeat forgets what was told", "grant.go", "case !g.told && g.callers", "case g.callers"},
		{"a promise is not telling", "promise.go", "g.told = true", ""},
		{"what nobody was told of is kept", "grant.go", "left = s.forget(g)", ""},
		{"shutting down makes promises", "promise.go", "|| s.isClosing() || d <= 0", "|| d <= 0"},
	}
	if !lane.Long.Runs() {
		t.Logf("2 of %d mutants: TEST_LANE=long builds all", len(mutants))
		mutants = mutants[:2]
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			text, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), m.from); n != 1 {
				t.Fatalf("%s has %q %d times, want once", m.file, m.from, n)
			}
			dir := t.TempDir()
			mutant, overlay := filepath.Join(dir, m.file), filepath.Join(dir, "overlay.json")
			original, err := filepath.Abs(m.file)
			if err != nil {
				t.Fatal(err)
			}
			replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutant}})
			if err != nil {
				t.Fatal(err)
			}
			for path, text := range map[string]string{
				mutant:  strings.Replace(string(text), m.from, m.to, 1),
				overlay: string(replace),
			} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-run", "^TestLeases$", "-timeout", "2m", ".")
			out, err := c.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestLeases") {
				t.Errorf("nobody noticed: %v\n%s", err, out)
			}
		})
	}
}
