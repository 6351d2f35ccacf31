package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The unit file of docs/operations.md can be enabled, and systemd finds nothing wrong with it.
func TestSystemdUnit(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```ini\n")
	unit, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("docs/operations.md has no unit file")
	}
	for _, line := range []string{"[Unit]", "After=network-online.target time-sync.target", "[Service]", "[Install]", "WantedBy=multi-user.target"} {
		if !strings.Contains(unit, line+"\n") {
			t.Errorf("the unit file lacks %s", line)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: needs systemd-analyze, of package systemd")
	}
	dir := t.TempDir()
	verify := func(name, unit string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(unit, "/usr/bin/poundlock", os.Args[0])), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(analyze, "verify", "--man=no", path)
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
		said, err := cmd.CombinedOutput()
		var about []string // this unit, not others of this machine
		for line := range strings.Lines(string(said)) {
			if strings.Contains(line, name) || strings.Contains(line, dir) {
				about = append(about, line)
			}
		}
		if err != nil && len(about) == 0 {
			t.Skipf("SKIPPED: systemd-analyze does not work here: %v\n%s", err, said)
		}
		return strings.Join(about, "")
	}
	if said := verify("poundlock@a.service", unit); said != "" {
		t.Errorf("systemd-analyze verify: %s", said)
	}
	if verify("wrong@a.service", strings.Replace(unit, "RestartSec=2", "RestartSecond=2", 1)) == "" {
		t.Error("systemd-analyze verify finds no fault in RestartSecond=2")
	}
}
