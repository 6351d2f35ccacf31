package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/server"
)

// The audits of the servers show the grants that the client knows, as
// docs/operations.md says.
func TestAudit(t *testing.T) {
	t.Parallel()
	const doc = "../../docs/operations.md"
	c := startAudited(t)
	grants := filepath.Join(c.dir, "grants")
	c.lock("the lock", "--audit", grants, "--", "true")
	c.lock("another", "--", "true")
	for i := range c.processes {
		c.stop(i, syscall.SIGTERM)
	}
	audit := section(t, doc, "### The audit")
	example := block.FindStringSubmatch(audit)
	if example == nil || example[1] != "sh" {
		t.Fatal("no example")
	}
	var records []server.AuditRecord
	for i := range 4 {
		text, err := os.ReadFile(c.path("audit", i))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.dir, fmt.Sprintf("s%d.audit", i+1)), text, 0o600); err != nil {
			t.Fatal(err)
		}
		for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
			var r server.AuditRecord
			if err := d.Decode(&r); err != nil {
				t.Fatal(err)
			}
			records = append(records, r)
		}
	}
	for _, name := range fieldsOf(records) {
		if !strings.Contains(audit, "`"+name+"`") {
			t.Errorf("%s does not describe the field %s of the audit", doc, name)
		}
	}
	request := auditedRequest(t, grants)
	given, ended := map[string]bool{}, map[string]bool{}
	for _, r := range records {
		if r.Request == request && r.Lock == "the lock" {
			map[string]map[string]bool{"support": given, "end": ended}[r.Event][r.Server] = true
		}
	}
	if len(given) < 3 || len(ended) != len(given) {
		t.Errorf("request %s was supported by %v, and no more by %v", request, given, ended)
	}
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skipf("SKIPPED: the example of %s needs jq: %v", doc, err)
	}
	sh := exec.Command("sh", "-c", example[2])
	sh.Dir = c.dir
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); len(lines) != 2 ||
		!strings.Contains(string(out), "\tthe lock\t") || !strings.Contains(string(out), "\t"+request+"\n") {
		t.Errorf("the example prints\n%s", out)
	}
}

func fieldsOf(records []server.AuditRecord) (names []string) {
	for _, r := range records {
		b, _ := json.Marshal(r)
		var m map[string]any
		_ = json.Unmarshal(b, &m)
		for name := range m {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// auditedRequest is the request of the only grant in the audit of a client, which has
// its release too.
func auditedRequest(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Event, Lock, Request, Client, Label string
		Time                                time.Time
		Token                               uint64 `json:",string"`
		HeldMS                              *int64 `json:"held_ms"`
	}
	var lines []line
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		d.DisallowUnknownFields() // docs/operations.md names these
		var l line
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	if len(lines) != 2 || lines[0].Event != "grant" || lines[1].Event != "release" || lines[0].Token == 0 || lines[0].Request != lines[1].Request {
		t.Fatalf("the audit of the client: %s", text)
	}
	return lines[0].Request
}
