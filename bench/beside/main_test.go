package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock"
	"github.com/poundlock/poundlock/bench/load"
	"github.com/poundlock/poundlock/internal/freeaddr"
	"github.com/poundlock/poundlock/internal/proctest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		playRole(os.Args[1], os.Args[2:])
	}
	os.Exit(proctest.Main{Tests: m}.Run())
}

// Every load runs in all systems, and leaves neither data nor processes behind. The
// windows are too short for figures.
func TestCompare(t *testing.T) {
	disk := publicDir(t)
	r, err := compare(t.Context(), plan{rounds: 1, window: 100 * time.Millisecond, slack: 1, disk: disk})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(disk + "/*"); len(left) > 0 {
		t.Errorf("data is left: %v", left)
	}
	if left := below(disk); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	var text, object bytes.Buffer
	if err := r.print(&text, false); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", &text)
	if err := r.print(&object, true); err != nil {
		t.Fatal(err)
	}
	var again result
	if err := json.Unmarshal(object.Bytes(), &again); err != nil ||
		len(again.Costs) != len(costs()) || len(again.Rows) != len(rivalries()) || len(again.Shared) != len(mixes()) {
		t.Fatalf("%d, %d and %d rows, %v", len(again.Costs), len(again.Rows), len(again.Shared), err)
	}
	holds := true
	for _, c := range again.Claims {
		holds = holds && c.met(1)
	}
	if holds != again.Holds {
		t.Errorf("holds: %v", again.Holds)
	}
	for _, x := range again.Costs {
		c := again.claim(x.Load, echo)
		if c == nil || x.CPU[ours] <= 0 || x.CPU[echo] <= 0 || !same(c.Ratio, x.CPU[ours]/x.CPU[echo]) {
			t.Errorf("%+v, claimed %+v", x, c)
		}
		// It asks three of four servers while they are busy.
		if times := x.Bytes[ours] / x.Bytes[echo]; times < 0.9*3/4 || times > 1.1 {
			t.Errorf("%s: %.0f bytes, an echo of %.0f", x.Load, x.Bytes[ours], x.Bytes[echo])
		}
	}
	for _, x := range again.Rows {
		if x.Rates[ours] <= 0 || x.Rates[onDisk] <= 0 {
			t.Errorf("%s: %v", x.Load, x.Rates)
		}
		if !same(x.Ratios[onDisk], x.Rates[ours]/x.Rates[onDisk]) {
			t.Errorf("%s: the ratio %v of %v", x.Load, x.Ratios, x.Rates)
		}
		if c := again.claim(x.Load, onDisk); c == nil || c.Ratio != x.Ratios[onDisk] {
			t.Errorf("%s: the ratio %v, claimed %+v", x.Load, x.Ratios, c)
		}
	}
	for _, x := range again.Shared {
		if len(x.Systems) < 2 || x.Systems[0].System != ours || x.Systems[1].System != onDisk || x.Systems[1].Ratio != 1 {
			t.Fatalf("%s: %+v", x.Load, x.Systems)
		}
		etcd := x.Systems[1].Readers + x.Systems[1].Writers
		for _, s := range x.Systems {
			if s.Readers <= 0 || s.ReadMS == nil || s.Together < 1 || s.Violations > 0 || s.Bytes <= 0 {
				t.Errorf("%s: %+v", x.Load, s)
			}
			if !same(s.Ratio, (s.Readers+s.Writers)/etcd) {
				t.Errorf("%s: %s: the ratio %v", x.Load, s.System, s.Ratio)
			}
		}
		if c := again.claim(x.Load, onDisk); c == nil || c.Ratio != x.Systems[0].Ratio {
			t.Errorf("%s: the ratio %v, claimed %+v", x.Load, x.Systems[0].Ratio, c)
		}
	}
}

func same(a, b float64) bool { return a > 0.999*b && a < 1.001*b }

// PostgreSQL refuses root, and another user cannot enter a directory of root's.
func TestPrivateDir(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: for root")
	}
	dir := proctest.SocketDir(t) // nobody else may enter it
	_, stop, err := startPostgres(t.Context(), postgres, dir)
	defer stop()
	if errors.Is(err, errAbsent) {
		t.Skip("SKIPPED: ", err)
	}
	if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("--disk %q: ", dir)) {
		t.Error(err)
	}
}

// publicDir is a temporary directory that everybody may enter.
func publicDir(t *testing.T) string {
	t.Helper()
	dir := proctest.SocketDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// below are the processes that work below a directory.
func below(dir string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range all {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, dir) {
			pids = append(pids, filepath.Base(filepath.Dir(link)))
		}
	}
	return pids
}

// With slack the best round counts, and a part of what is claimed.
func TestMet(t *testing.T) {
	least, most := claim{}, claim{AtMost: true}
	if least.better(2, 3) != 3 || least.better(3, 2) != 3 || most.better(2, 3) != 2 || most.better(3, 2) != 2 {
		t.Error("the better one of 2 and 3")
	}
	for _, x := range []struct {
		c         claim
		slack     float64
		met       bool
		complaint string
	}{
		{claim{Ratio: 12, Best: 12, Claimed: 5}, 1, true, ""},
		{claim{Load: "a", Rival: "b", Ratio: 5, Best: 11, Claimed: 10}, 1, false, "a: 5.00 times b, claimed is at least 10"},
		{claim{Ratio: 5, Best: 7, Claimed: 10}, 0.6, true, ""},
		{
			claim{Load: "a", Rival: "b", Ratio: 5, Best: 7, Claimed: 10},
			0.8, false,
			"a: 7.00 times b, claimed is at least 10 with slack 0.8, and in the best round",
		},
		{claim{Ratio: 1.5, Best: 1.2, Claimed: 1.5, AtMost: true}, 1, true, ""},
		{
			claim{Load: "a", Rival: "b", Ratio: 1.6, Best: 1.2, Claimed: 1.5, AtMost: true},
			1, false,
			"a: 1.60 times b, claimed is at most 1.5",
		},
		{claim{Ratio: 9, Best: 2.4, Claimed: 1.5, AtMost: true}, 0.6, true, ""},
		{
			claim{Load: "a", Rival: "b", Ratio: 9, Best: 2.6, Claimed: 1.5, AtMost: true},
			0.6, false,
			"a: 2.60 times b, claimed is at most 1.5 with slack 0.6, and in the best round",
		},
	} {
		if got := x.c.met(x.slack); got != x.met {
			t.Errorf("%+v with slack %g: %v", x.c, x.slack, got)
		}
		if got := x.c.err(x.slack).Error(); !x.met && got != x.complaint {
			t.Errorf("%q, want %q", got, x.complaint)
		}
		r := result{Claims: []claim{{Claimed: 0}, x.c}}
		if unmet := r.unmet(x.slack); (len(unmet) == 0) != x.met {
			t.Errorf("%+v with slack %g: unmet are %v", x.c, x.slack, unmet)
		}
	}
}

func TestWrong(t *testing.T) {
	good := plan{rounds: 1, window: time.Second, slack: 1}
	if err := good.wrong(); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[string]func(*plan){
		`--only "all"`:  func(p *plan) { p.only = "all" },
		"--rounds 0":    func(p *plan) { p.rounds = 0 },
		"--window 99ms": func(p *plan) { p.window = 99 * time.Millisecond },
		"--slack 0":     func(p *plan) { p.slack = 0 },
		"--slack 1.5":   func(p *plan) { p.slack = 1.5 },
	} {
		p := good
		spoil(&p)
		if err := p.wrong(); err == nil || !strings.HasPrefix(err.Error(), want+": want ") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// What is not installed is left out; what cannot start is an error. Both are cleaned up, the last one first.
func TestStart(t *testing.T) {
	var stopped []string
	starts := func(err error) starter {
		return func(_ context.Context, name, _ string) (*load.Crew, func(), error) {
			return nil, func() { stopped = append(stopped, name) }, err
		}
	}
	all := []contender{{name: "a", start: starts(nil)}, {name: "b", start: starts(fmt.Errorf("%w: no b", errAbsent))}}
	systems, stop, err := start(t.Context(), all)
	if err != nil || len(systems) != 1 || systems[0].name != "a" {
		t.Errorf("%v, %v", systems, err)
	}
	if stop(); strings.Join(stopped, "") != "ba" {
		t.Errorf("stopped %q", stopped)
	}
	broken := errors.New("broken")
	_, stop, err = start(t.Context(), append(all, contender{name: "c", start: starts(broken)}))
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "c: ") {
		t.Error(err)
	}
	if stop(); strings.Join(stopped, "") != "bacba" {
		t.Errorf("stopped %q", stopped)
	}
}

// Whoever is beside a writer is counted, in all windows. The rest is of the median one.
func TestSides(t *testing.T) {
	window := func(rate float64, records ...[]load.Record) sample {
		w := &load.Window{Length: time.Second, Records: records, Traffic: rate}
		for range records {
			w.Users = append(w.Users, load.User{Name: "a"})
		}
		return sample{Window: w, rate: rate}
	}
	ms := int64(time.Millisecond)
	reader := load.Record{Called: 0, Entered: 2 * ms, Left: 8 * ms, Back: 8 * ms, Group: poundlock.Shared}
	late := load.Record{Called: 9 * ms, Entered: 12 * ms, Left: 13 * ms, Back: 13 * ms}
	early := late
	early.Called, early.Entered = 1*ms, 5*ms
	s, err := sidesOf([]sample{
		window(1, []load.Record{early}, []load.Record{reader}),
		window(3, []load.Record{late}, []load.Record{reader}),
		window(2, []load.Record{late}, []load.Record{reader}, []load.Record{reader}, nil),
	})
	want := sides{Readers: 2, Writers: 1, Bytes: 2, Together: 2, Violations: 1}
	if err == nil || !strings.Contains(err.Error(), "exclusion 1") {
		t.Errorf("somebody was beside a writer: %v", err)
	}
	if *s.ReadMS != (load.Quantiles{P50: 2, P99: 2}) || *s.WriteMS != (load.Quantiles{P50: 3, P99: 3}) {
		t.Errorf("waits %v and %v", s.ReadMS, s.WriteMS)
	}
	if s.ReadMS, s.WriteMS = nil, nil; s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}

// The recipe for shared locks: readers wait for the last writer before them, writers for the last of all.
func TestLastBefore(t *testing.T) {
	all := []string{"write-0000000007", "read-0000000010", "write-0000000008", "read-0000000009", "write-0000000011"}
	for own, want := range map[string]string{
		"write-0000000007": "",
		"write-0000000008": "write-0000000007",
		"read-0000000009":  "write-0000000008",
		"read-0000000010":  "write-0000000008",
		"write-0000000011": "read-0000000010",
	} {
		if got := lastBefore(append([]string{}, all...), own); got != want {
			t.Errorf("%s waits for %q, want %q", own, got, want)
		}
	}
	if got := lastBefore([]string{"read-0000000001", "read-0000000002"}, "read-0000000002"); got != "" {
		t.Errorf("a reader waits for %q", got)
	}
}

// A frame comes back from each server. A server that ends is an error, not a wait.
func TestEcho(t *testing.T) {
	addrs, err := freeaddr.Find(4)
	if err != nil {
		t.Fatal(err)
	}
	servers, err := load.StartServers(t.Context(), addrs, echoServer)
	if err != nil {
		t.Fatal(err)
	}
	defer servers.Close()
	e, err := openEcho(t.Context(), servers.Table)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for k := range int64(3) {
		held, err := e.Lock(t.Context(), "a")
		if err == nil {
			err = held.Unlock()
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, want := e.Traffic(), (k+1)*4*2*echoFrame; got != want {
			t.Errorf("%d bytes, want %d", got, want)
		}
	}
	servers.Kill(2)
	if _, err := e.Lock(t.Context(), "a"); err == nil {
		t.Error("a server that was killed answers")
	}
	if e, err := openEcho(t.Context(), servers.Table); err == nil {
		e.Close()
		t.Error("a server that was killed listens")
	}
}

// A guest ends when it is told to, and when the process above it is killed. That it ends by itself is an error.
func TestGuest(t *testing.T) {
	dir := t.TempDir()
	sleep := func() (p *load.Process, stop func(), pid int) {
		t.Helper()
		file := filepath.Join(dir, "pid")
		os.Remove(file)
		p, stop, err := startGuest("sleeper", dir, "sh", "-c", "echo $$ >new; mv new pid; exec sleep 1000")
		if err != nil {
			t.Fatal(err)
		}
		for pid == 0 {
			if err := p.Err(); err != nil {
				t.Fatal(err)
			}
			b, _ := os.ReadFile(file)
			pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		}
		return p, stop, pid
	}
	_, stop, pid := sleep()
	if stop(); proctest.Running(pid) {
		t.Error("it was told to end, and runs on")
	}
	p, stop, pid := sleep()
	defer stop()
	p.Kill()
	for end := time.Now().Add(time.Minute); proctest.Running(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the process above it was killed, and it runs on")
		}
	}
	p, stop, err := startGuest("tired", dir, "sh", "-c", "echo too tired; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if <-p.Done(); !strings.Contains(p.Err().Error(), "too tired") || !strings.Contains(p.Err().Error(), "exit status 3") {
		t.Error(p.Err())
	}
}
