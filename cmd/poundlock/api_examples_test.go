package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// A block is fenced text of a document.
var block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// TestAPIExamples runs what docs/api.md shows, with bash and curl, against server
// processes, and compares what it prints with what the document says it does.
func TestAPIExamples(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: the examples of docs/api.md need %s: %v", tool, err)
		}
	}
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	cluster := startAPI(t)
	waitHealthy(t, http.DefaultClient, "http", cluster.addr)
	const mark = "--- example"
	script, wants := "set -eu -o pipefail\n", map[int]string{}
	n := 0
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "sh" {
			n++
			script += "echo; echo '" + mark + "'\n" + m[2]
		} else {
			wants[n] = m[2]
		}
	}
	if n < 5 || len(wants) < 5 {
		t.Fatalf("found %d examples and %d outputs", n, len(wants))
	}
	c := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(script, "127.0.0.1:7080", cluster.addr))
	c.Dir = t.TempDir()
	var errors bytes.Buffer
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, errors.String(), out)
	}
	got := strings.Split(string(out), "\n"+mark+"\n")[1:]
	if len(got) != n {
		t.Fatalf("%d outputs of %d examples:\n%s", len(got), n, out)
	}
	for i, want := range wants {
		if !alike(got[i-1], want) {
			t.Errorf("example %d prints\n%s\nwhere the document has\n%s", i, got[i-1], want)
		}
	}
	status, err := os.ReadFile(filepath.Join(c.Dir, "status"))
	if err != nil || !strings.Contains(string(status), "STATE_HELD") {
		t.Errorf("status: %s, %v", status, err)
	}
}

// varying are the values of JSON that no document can know.
var varying = map[string]bool{"session_id": true, "tokens": true, "certain_ms": true, "client_id": true, "token": true}

// alike compares JSON by what does not vary, and other text as it is.
func alike(got, want string) bool {
	var a, b any
	if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		return strings.TrimSpace(got) == strings.TrimSpace(want)
	}
	return reflect.DeepEqual(shape(a), shape(b))
}

// shape replaces values that vary by their type.
func shape(v any) any {
	if list, ok := v.([]any); ok {
		for i, x := range list {
			list[i] = shape(x)
		}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for k, x := range m {
		if m[k] = shape(x); varying[k] {
			m[k] = fmt.Sprintf("%T", x)
			if list, ok := x.([]any); ok && len(list) > 0 {
				m[k] = fmt.Sprintf("%d of %T", len(list), list[0])
			}
		}
	}
	return m
}
