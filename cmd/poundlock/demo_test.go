package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/demo"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/history/recorder"
)

func runDemo(t *testing.T, args ...string) (r demo.Result, err error) {
	t.Helper()
	out, errs, err := output(t, append([]string{"demo", "--json", "--workers", "4"}, args...)...)
	if e := json.Unmarshal([]byte(out), &r); e != nil {
		t.Fatalf("%v: %v\n%s\n%s", e, err, out, errs)
	}
	t.Logf("%+v", r)
	return r, err
}

// judgeDirectory judges all files of a directory.
func judgeDirectory(t *testing.T, dir string) *history.Report {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := recorder.Judge(history.Bounds{}, paths...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDemo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "events")
	r, err := runDemo(t, "--duration", "2s", "--seed", "7", "--history", dir)
	if err != nil {
		t.Errorf("%v", err)
	}
	if h := judgeDirectory(t, dir); !h.Accepted || len(h.Files) != 4 || h.Measures.Entries < r.Counted {
		t.Errorf("%+v", h)
	} else if k := slices.IndexFunc(h.Files, func(f history.File) bool { return !f.Ended }); k >= 0 {
		t.Errorf("nobody killed a worker, but %+v has no end", h.Files[k])
	}
	if r.Servers != 4 || r.Workers != 4 || r.Seed != 7 || r.DurationMS < 2000 {
		t.Errorf("it says what was not asked for: %+v", r)
	}
	if r.Kills == 0 || r.Expected == 0 || r.Counted != r.Expected || r.Lost != 0 || r.LongestMS <= 0 || r.PerS <= 0 {
		t.Errorf("%+v", r)
	}
	if r.LocksLost+r.Fenced+r.Failed > 0 || r.Error != "" {
		t.Errorf("within the budget: %+v", r)
	}
}

// Without the lock counts are lost: the demo can fail.
func TestDemoWithoutLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runDemo(t, "--duration", "2s", "--without-lock", "--history", dir)
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != cli.ExitViolated {
		t.Errorf("exit status: %v", err)
	}
	if r.Lost <= 0 || r.Lost != int64(r.Expected)-int64(r.Counted) {
		t.Errorf("%+v", r)
	}
	if h := judgeDirectory(t, dir); h.Accepted {
		t.Errorf("workers without a lock: %+v", h)
	}
	if _, errs, err := output(t, "demo", "--history", dir); err == nil || !strings.Contains(errs, "is not empty") {
		t.Errorf("a directory with another run: %v: %s", err, errs)
	}
}

// ^C ends it with the verdict so far; SIGKILL ends all that it has started.
func TestDemoEnds(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "two seconds of a demonstration that is ended in many ways")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		c := clitest.Command("demo", "--workers", "2", "--duration", "1h")
		tmp := proctest.SocketDir(t)
		c.Env = append(c.Env, "TMPDIR="+tmp)
		var out proctest.Log
		c.Stdout = &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patience); !strings.Contains(out.String(), "is back"); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("no server came back\n%s", &out)
			}
		}
		server, worker := proctest.Child(c.Process.Pid, tetherName), proctest.Child(c.Process.Pid, demoWorkerName)
		c.Process.Signal(sig)
		err := c.Wait()
		for end := time.Now().Add(patience); proctest.Running(server) || proctest.Running(worker); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%v: processes are left", sig)
			}
		}
		if sig == syscall.SIGKILL {
			continue
		}
		if err != nil || !strings.Contains(out.String(), ", lost 0\n") {
			t.Errorf("%v: %v\n%s", sig, err, &out)
		}
		if left, _ := filepath.Glob(tmp + "/*"); len(left) > 0 {
			t.Errorf("%v: files are left: %v", sig, left)
		}
	}
}

// On a terminal there is a table that changes, and the verdict below it.
func TestDemoTerminal(t *testing.T) {
	t.Parallel()
	c := clitest.Command("demo", "--workers", "2", "--duration", "1s")
	tty, err := pty.Start(c)
	if err != nil {
		t.Skipf("SKIPPED: no pseudo terminal: %v", err)
	}
	defer tty.Close()
	var screen proctest.Log
	var reading sync.WaitGroup
	reading.Go(func() { io.Copy(&screen, tty) }) // until the other end is closed
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &screen)
	}
	reading.Wait()
	text := screen.String()
	for _, want := range []string{"SERVER", "LONGEST WAIT", "s4", "servers killed", "\x1b[", "lost 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q on the terminal:\n%s", want, text)
		}
	}
}
