package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/server"
)

// A successor gets the table, and the admin port as soon as its predecessor has ended;
// one that may not have the table says what to do.
func TestServeHandover(t *testing.T) {
	t.Parallel()
	long := []string{"--lease", (2 * patience).String()} // so that no lapse looks like a good-bye
	c := startAudited(t, long...)
	handover := append([]string{"--handover", "unix:" + c.path("next", 0)}, long...)
	c.stop(0, syscall.SIGTERM)
	c.start(0, handover...)
	c.until(0, http.StatusOK)

	old := c.processes[0]
	c.start(0, handover...)
	if err := old.Wait(); err != nil {
		t.Errorf("the predecessor: %v", err)
	}
	c.until(0, http.StatusOK)
	if log := c.logs[0].String(); !strings.Contains(log, "took over from a predecessor") {
		t.Errorf("the successor's log:\n%s", log)
	}
	// Each server is a client, too. That of the predecessor has said good-bye.
	for end := time.Now().Add(patience); !strings.Contains(c.scrape(0), "\npoundlock_sessions 4\n"); {
		if time.Now().After(end) { // half a lease
			t.Fatal("the predecessor's own client is still there")
		}
		time.Sleep(10 * time.Millisecond)
	}

	other := c.program(append([]string{"serve", "--name", "s1", "--epoch", "7"}, handover...)...)
	var log proctest.Log
	other.Stderr = &log
	var exit *exec.ExitError
	if err := other.Run(); !errors.As(err, &exit) || exit.ExitCode() != cli.ExitError {
		t.Errorf("another epoch: %v", err)
	}
	for _, want := range []string{"epoch differs", "hint: the predecessor goes on serving"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("another epoch: %q is missing in\n%s", want, &log)
		}
	}
	c.until(0, http.StatusOK)
}

// While too few servers give locks because others drain, nobody is told that somebody
// else has one.
func TestLockWhileDraining(t *testing.T) {
	t.Parallel()
	c := startAudited(t)
	holder := c.program("lock", "held", "--", "cat")
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		_ = holder.Wait()
	}()
	for i := range 4 {
		c.holds(i)
	}
	for _, i := range []int{2, 3} {
		_ = c.processes[i].Process.Signal(syscall.SIGTERM)
	}
	for _, i := range []int{2, 3} {
		c.says(i, "draining")
	}
	refused := func(flags ...string) (wrong string) {
		t.Helper()
		out, err := c.program(append(append([]string{"lock"}, flags...), "other", "--", "true")...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitNoQuorum || strings.Contains(string(out), "somebody") {
			t.Fatalf("%v: %v: %s", flags, err, out)
		}
		for _, want := range []string{"too few servers give it now", "hint: poundlock status shows which servers drain"} {
			if !strings.Contains(string(out), want) {
				return fmt.Sprintf("%v: no %q in %s", flags, want, out)
			}
		}
		return ""
	}
	if wrong := refused("--try"); wrong != "" {
		t.Error(wrong)
	}
	for wait := 300 * time.Millisecond; ; wait *= 2 { // in which a slow machine hears of no server
		wrong := refused("--wait", wait.String())
		if wrong == "" {
			break
		}
		if wait > patience/4 {
			t.Fatal(wrong)
		}
	}
}

// says waits until the log of a server has a text.
func (c *audited) says(i int, text string) {
	c.t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(c.logs[i].String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("s%d never said %q:\n%s", i+1, text, c.logs[i])
		}
	}
}

// holds waits until a server supports somebody.
func (c *audited) holds(i int) {
	c.t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(c.scrape(i), "\npoundlock_supports 1\n"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("s%d supports nobody", i+1)
		}
	}
}

// A server that sits out says that it does not serve yet, and ends at once.
func TestServeSitOut(t *testing.T) {
	c := startAudited(t)
	c.stop(0, syscall.SIGTERM)
	c.start(0, "--sit-out", "1h")
	c.until(0, http.StatusOK) // of the others there is a quorum
	_, body, err := c.get(0, "/healthz")
	var h server.Health
	if err := errors.Join(err, json.Unmarshal([]byte(body), &h)); err != nil || h.Serving {
		t.Errorf("%v, %s", err, body)
	}
	c.says(0, "sits out")
	if log := c.logs[0].String(); !strings.Contains(log, "until=") {
		t.Errorf("the log:\n%s", log)
	}
	began := time.Now()
	c.stop(0, syscall.SIGTERM)
	if d := time.Since(began); d > defaultDrain {
		t.Errorf("it took %v to end", d)
	}
}
