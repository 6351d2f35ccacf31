package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/internal/proctest"
	"github.com/poundlock/poundlock/verify/history"
)

// output runs poundlock with arguments, and returns
// its output.
func output(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	c := clitest.Command(args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	return out.String(), errs.String(), err
}

func runBench(t *testing.T, args ...string) benchResult {
	t.Helper()
	out, errs, err := output(t, append([]string{"bench", "--json", "--duration", "200ms"}, args...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs)
	}
	if errs != "" {
		t.Errorf("on standard error: %s", errs)
	}
	var r benchResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return r
}

func TestBench(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := runBench(t, "--clients", "3", "--names", "5", "--count", "1000", "--history", filepath.Join(dir, "events"))
	h := judgeDirectory(t, dir)
	if !h.Accepted || h.Locks != 5 || h.Measures.Entries < uint64(r.Acquires+r.Handovers) {
		t.Errorf("the history: %+v", h)
	}
	if r.Servers != 4 || r.Clients != 3 || r.Names != 5 || r.DelayMS != 0 || r.DurationMS != 200 {
		t.Errorf("it says what was not asked for: %+v", r)
	}
	if r.Acquires < 1000 || r.Handovers < 20 || r.AcquiresPerS <= 0 || r.HandoversPerS <= 0 {
		t.Errorf("it has not measured enough: %+v", r)
	}
	if r.Jain <= 1.0/3 || r.Jain > 1 {
		t.Errorf("Jain's index of three: %v", r.Jain)
	}
	if r.AcquireT != nil || r.HandoverT != nil || r.ReleaseT != nil {
		t.Error("multiples of no delay")
	}
	if r.Contended != nil {
		t.Errorf("readers where there are none: %+v", r.Contended)
	}
	if r.AcquireMS.P50 > r.AcquireMS.P99 || r.HandoverMS.P50 <= 0 || r.ReleaseMS.P50 <= 0 {
		t.Errorf("times: %+v", r)
	}
	// A request, an answer and a release with each of four servers: twelve messages,
	// none below 12 bytes.
	if r.BytesPerAcquire < 144 || r.BytesPerAcquire > 4000 {
		t.Errorf("%v bytes an acquire", r.BytesPerAcquire)
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil && (r.CPUPerAcquire <= 0 || r.CPUOf != "clients and servers") {
		t.Errorf("processor time %v of %q", r.CPUPerAcquire, r.CPUOf)
	}
}

// TestBenchReaders: readers are inside together, and what is recorded is accepted by the rule for groups. If those who were
// together did not share, it would be rejected.
func TestBenchReaders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "events")
	var r benchResult
	for hold := 5 * time.Millisecond; r.Contended == nil || r.Contended.Together < 2; hold *= 2 {
		if hold > time.Second {
			t.Fatalf("never two inside together: %+v", r.Contended)
		}
		r = runBench(t, "--clients", "4", "--count", "20", "--readers", "80", "--hold", hold.String(), "--history", file)
	}
	if c := r.Contended; r.Handovers == 0 || r.Readers != 80 || r.HoldMS < 5 || c.Shared == 0 || c.Exclusive == 0 || c.PerS <= 0 || c.Together > 4 {
		t.Errorf("%+v, contended %+v", r, c)
	}
	h := judgeDirectory(t, dir)
	if !h.Accepted || h.Measures.Concurrency.Max < 2 || h.Measures.Sessions == 0 {
		t.Errorf("the history: %+v", h)
	}
	events, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	alone := bytes.ReplaceAll(events, []byte(`,"group":"shared"`), nil)
	if err := os.WriteFile(file, alone, 0o600); err != nil || len(alone) == len(events) {
		t.Fatalf("%v; %d bytes without groups, %d with them", err, len(alone), len(events))
	}
	if h := judgeDirectory(t, dir); h.Accepted || h.Violations[0].Property != history.Exclusion {
		t.Errorf("two inside together that do not share: %+v", h)
	}
	out, _, err := output(t, "bench", "--clients", "2", "--count", "1", "--duration", "100ms", "--readers", "100")
	if err != nil || !regexp.MustCompile(`(?m)^readers .* a second of one name: \d+ shared, 0 exclusive, [12] inside together at most$`).MatchString(out) ||
		strings.Contains(out, "hand-over") {
		t.Errorf("readers alone: %v\n%s", err, out)
	}
}

// With a delay that dominates, the multiples are those of the algorithm. What a busy
// machine adds weighs half when the delay is twice as long, and what is wrong as much.
func TestBenchDelay(t *testing.T) {
	lane.CI.Need(t, "three seconds of delayed messages")
	for delay := 25; ; delay *= 2 {
		r := runBench(t, "--clients", "3", "--count", "10", "--delay", fmt.Sprint(delay, "ms"))
		if r.DelayMS != float64(delay) || r.AcquireT == nil || r.HandoverT == nil || r.ReleaseT == nil {
			t.Fatalf("no multiples of the delay: %+v", r)
		}
		if r.AcquireT.P50 < 2 || r.HandoverT.P50 < 2 {
			t.Errorf("acquire %.2f T, hand-over %.2f T, want two at least", r.AcquireT.P50, r.HandoverT.P50)
		}
		if ratio := r.AcquireMS.P50 / r.AcquireT.P50 / r.DelayMS; ratio < 0.99 || ratio > 1.01 {
			t.Errorf("%v ms are %v T", r.AcquireMS.P50, r.AcquireT.P50)
		}
		if r.AcquireT.P50 <= 3.5 && r.HandoverT.P50 <= 3.5 && r.ReleaseT.P50 <= 0.2 {
			return
		}
		late := fmt.Sprintf("acquire %.2f T, hand-over %.2f T, release %.2f T, want two, two and none",
			r.AcquireT.P50, r.HandoverT.P50, r.ReleaseT.P50)
		if delay > 200 {
			t.Fatal(late)
		}
		t.Logf("with a delay of %d ms: %s", delay, late)
	}
}

// One client has nobody to hand over to, and a cluster that runs is measured too.
func TestBenchServers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	r := runBench(t, append(s.flags, "--clients", "1", "--count", "20")...)
	if r.Handovers != 0 || r.HandoverMS != nil || r.Jain != 0 || r.Acquires < 20 {
		t.Errorf("one client: %+v", r)
	}
	if r.CPUOf != "" && r.CPUOf != "clients" {
		t.Errorf("the processor time of %q", r.CPUOf)
	}
}

// A bench that is killed leaves no process behind, nor does one that is interrupted.
func TestBenchEnds(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "ten seconds of servers that end in the middle of a measurement")
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM} {
		c := clitest.Command("bench", "--clients", "2", "--duration", "1m")
		var said proctest.Log
		c.Stderr = &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var server, client int
		for end := time.Now().Add(patience); server == 0 || client == 0; time.Sleep(5 * time.Millisecond) {
			server = proctest.Child(c.Process.Pid, tetherName)
			client = proctest.Child(c.Process.Pid, benchClientName)
			if time.Now().After(end) {
				t.Fatal("no children")
			}
		}
		c.Process.Signal(sig)
		_ = c.Wait()
		if code, want := c.ProcessState.ExitCode(), 128+int(sig); sig != syscall.SIGKILL && code != want {
			t.Errorf("%v: exit status %d, want %d", sig, code, want)
		}
		if sig != syscall.SIGKILL && said.String() != "" {
			t.Errorf("%v: it says %s", sig, &said)
		}
		for end := time.Now().Add(patience); proctest.Running(server) || proctest.Running(client); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%v: processes are left", sig)
			}
		}
	}
}

func TestBenchServerGone(t *testing.T) {
	t.Parallel()
	lane.CI.Need(t, "three seconds of a measurement with a server less")
	_, errs, err := output(t, "bench", "--servers", "s1=127.0.0.1:1,s2=127.0.0.1:2,s3=127.0.0.1:3,s4=127.0.0.1:4")
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != cli.ExitNoQuorum || !strings.HasPrefix(errs, "poundlock: no quorum") || !strings.Contains(errs, "hint: are the servers up") {
		t.Errorf("%v: %s", err, errs)
	}
}

// The commands of docs/performance.md exist, with their flags.
func TestPerformanceCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		words, ok := strings.CutPrefix(strings.TrimSpace(line), "poundlock bench")
		if !ok {
			continue
		}
		found++
		f := &benchFlags{}
		c := f.command()
		err := c.ParseFlags(strings.Fields(words))
		if err == nil {
			err = f.check(c)
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if found < 3 {
		t.Errorf("only %d commands", found)
	}
}
