package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/server"
	"github.com/poundlock/poundlock/server/status"
)

// On a terminal no line is longer than it, and a reason stands once for all servers that it is about.
func TestStatusFits(t *testing.T) {
	t.Parallel()
	servers := ""
	for i := range 4 {
		servers += fmt.Sprintf(",s%d=127.0.0.1:%d", i+1, i+1)
	}
	c := proctest.Open(t, terminalEnv(), "sh", "-c", `stty cols 60; "$TEST_POUNDLOCK" status --timeout 1s --servers `+servers[1:])
	c.See("loss budget 0: no server may be restarted:\r\n4 servers do not answer\r\n")
	c.See("\r\ns1, s2, s3, s4: no connection: connection refused\r\n")
}

// TestRestartWhenSafe: the expression of the documents, run as it stands there, lets a
// script restart every server in turn under a lock that is held throughout.
func TestRestartWhenSafe(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("SKIPPED: jq is not installed, so that the expression in the documents is not tried")
	}
	expression := ""
	for _, doc := range []string{"../../docs/cli.md", "../../docs/operations.md"} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		_, x, found := strings.Cut(string(text), "until poundlock status")
		x, _, _ = strings.Cut(x, "; do")
		if !found || !strings.Contains(x, ".settled") || expression != "" && x != expression {
			t.Fatalf("%s has no such expression, or another one: %q", doc, x)
		}
		expression = x
	}
	s := newStage(t)
	grant, err := s.client.Mutex("held").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer grant.Unlock()
	safe := func() bool {
		t.Helper()
		c := exec.Command("sh", "-c", `poundlock() { "$POUNDLOCK_TEST_PROGRAM" "$@"; }; poundlock status`+expression)
		c.Env = append(os.Environ(), clitest.RunAsProgram+"=1", "POUNDLOCK_TEST_PROGRAM="+os.Args[0],
			"POUNDLOCK_CLOCK_BOUND="+s.flags[1], "POUNDLOCK_SERVERS="+s.flags[3])
		out, err := c.CombinedOutput()
		if err != nil && !strings.HasPrefix(string(out), "false") {
			t.Fatalf("%v\n%s", err, out)
		}
		return err == nil
	}
	await := func(want bool) {
		t.Helper()
		for end := time.Now().Add(patience); safe() != want; {
			if time.Now().After(end) {
				t.Fatalf("settled is not %v", want)
			}
		}
	}
	await(true)
	time.Sleep(status.Settling) // a younger holder need not have all supports
	if err := s.local.Stop(1); err != nil {
		t.Fatal(err)
	}
	await(false)
	if err := s.local.Start(1); err != nil {
		t.Fatal(err)
	}
	await(true)
	o, err := server.Observe(server.AskConfig{Servers: s.local.Servers(), ClockBound: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	l, err := one(t.Context(), o, "held")
	if err != nil || len(l.Holders) != 1 || l.Holders[0].SupportsLive != 4 {
		t.Errorf("%v, settled, and the holder is %+v", err, l.Holders)
	}
	if err := grant.Context().Err(); err != nil {
		t.Error(err)
	}
}
