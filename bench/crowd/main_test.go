package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/proctest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		playRole(os.Args[1], os.Args[2:])
	}
	os.Exit(proctest.Main{Tests: m}.Run())
}

// run runs one part as its command line says, and returns its figures by name.
func run(t *testing.T, args ...string) map[string]float64 {
	t.Helper()
	p, _, err := parse(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parts[p.part](t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	figures := map[string]float64{}
	for _, r := range got.Rows {
		figures[r.What] = r.Value
	}
	var text bytes.Buffer
	if err := got.print(&text, false); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	return figures
}

// want fails where a figure is not there, or not as it has to be on any machine.
func want(t *testing.T, figures map[string]float64, what string, ok func(v float64) bool) {
	t.Helper()
	if v, is := figures[what]; !is || !ok(v) {
		t.Errorf("%s: %v, there %v", what, v, is)
	}
}

func none(v float64) bool { return v == 0 }
func some(v float64) bool { return v > 0 }

func TestIdle(t *testing.T) {
	f := run(t, "idle", "--clients", "20", "--each", "2", "--for", "300ms")
	want(t, f, "sessions at the server with the fewest", func(v float64) bool { return v == 20 })
	want(t, f, "locks held", func(v float64) bool { return v == 40 })
	want(t, f, "locks lost", none)
	want(t, f, "processor time, a client and second", some)
	want(t, f, "with acquires beside: processor time, a client and second", some)
	want(t, f, "an acquire beside, median", some)
}

func TestHeld(t *testing.T) {
	f := run(t, "held", "--clients", "3", "--locks", "3000", "--for", "300ms")
	want(t, f, "locks held", func(v float64) bool { return v == 3000 })
	want(t, f, "locks lost", none)
	want(t, f, "heap a lock and server", some)
	want(t, f, "heap a lock at its client", some)
}

func TestReaders(t *testing.T) {
	f := run(t, "readers", "--clients", "200", "--few", "3", "--for", "300ms", "--lease", "1s")
	want(t, f, "readers inside", func(v float64) bool { return v == 200 })
	want(t, f, "readers that lost it", none)
	want(t, f, "heap of it at a server", func(v float64) bool { return v > 0 && v < 1 })
	want(t, f, "an acquire beside 3, 99 of 100", some)
	want(t, f, "an acquire beside 200, 99 of 100", some)
	want(t, f, "acquires beside 200 that failed", none)
}

func TestOverload(t *testing.T) {
	f := run(t, "overload", "--clients", "2", "--held", "10", "--times", "1,3", "--for", "300ms", "--patience", "5s")
	want(t, f, "3x: one after the other", some)
	want(t, f, "3x: granted in time", some)
	want(t, f, "3x: held locks lost", none)
	want(t, f, "3x: of the best", some)
}

func TestShards(t *testing.T) {
	f := run(t, "shards", "--clients", "20", "--shards", "5", "--few", "2", "--for", "1s", "--rests=false")
	want(t, f, "sessions that Dial makes", func(v float64) bool { return v >= 20*3 && v < 20*5*members })
	want(t, f, "sessions with those that something is wanted of", func(v float64) bool { return v >= 20*3 && v < 20*5*members })
	want(t, f, "acquires", some)
	want(t, f, "acquires that failed", none)
	want(t, f, "the first one in a shard, median", some)
}

func TestDivide(t *testing.T) {
	for _, x := range []struct {
		clients, limit int
		want           []int
	}{
		{1, 1024, []int{1}},
		{5, 1024, []int{3, 2}},
		{800, 1024, []int{200, 200, 200, 200}},
		{10_000, 20_000, []int{3334, 3333, 3333}},
	} {
		got, err := divide(x.clients, 1, x.limit)
		if err != nil || len(got) != len(x.want) || got[0] != x.want[0] {
			t.Errorf("%d clients with %d files: %v, %v, want %v", x.clients, x.limit, got, err, x.want)
		}
	}
	if got, err := divide(1000, 4, 20_000); err != nil || len(got) != 2 {
		t.Errorf("clients of four shards: %v, %v", got, err)
	}
	if got, err := divide(4000, 4, 20_000); err != nil || len(got) != 4 {
		t.Errorf("many clients of four shards: %v, %v", got, err)
	}
	if _, err := divide(1000, 1, 1024); err == nil || !strings.Contains(err.Error(), "ulimit -n 1100") {
		t.Errorf("more clients than files: %v", err)
	}
}

func TestWrongArguments(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "want idle, held, readers, overload or shards",
		"busy":                       `"busy"`,
		"idle --clients 0":           "--clients 0",
		"held --locks 65537000":      "--locks 65537000",
		"overload --times 1,x":       `--times "1,x"`,
		"overload --patience 0s":     "--patience 0s",
		"idle --for 1ms":             "--for 1ms",
		"idle --pace 0":              "--pace 0",
		"idle --slack 0.5":           "--slack 0.5",
		"idle --lease 1ms":           "--lease 1ms",
		"idle --each -1":             "--each -1",
		"overload --held 100000":     "--held 100000",
		"idle more":                  `"more"`,
		"readers --clients 5":        "--few 10",
		"shards --shards 1":          "--shards 1",
		"shards --shards 5 --few 6":  "--few 6",
		"overload --times 1,2,1000x": "--times",
	} {
		if _, _, err := parse(strings.Fields(text), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// What is claimed is an error where it does not hold, and is content with less where that is said.
func TestClaims(t *testing.T) {
	got := newTable("a table")
	got.value("time", 15, "us").atMost(10)
	got.value("rate", 0.5, "").atLeast(0.8)
	if err := got.wrong(1); err == nil || err.Error() != "time: 15 us, claimed is at most 10" {
		t.Error(err)
	}
	if err := got.wrong(1.5); err == nil || !strings.Contains(err.Error(), "rate: 0.5, claimed is at least 0.8") {
		t.Error(err)
	}
	if err := got.wrong(2); err != nil {
		t.Error(err)
	}
	got.value("lost", 1, "").atMost(0)
	if err := got.wrong(1000); err == nil || !strings.Contains(err.Error(), "lost: 1") {
		t.Errorf("a lock that was lost is passed over: %v", err)
	}
}

// Acquires beside that fail, or take long, after a load say when all is as usual again.
func TestSettle(t *testing.T) {
	over := time.Now()
	at := func(after, took time.Duration, err error) look { return look{over.Add(after), took, err} }
	before, back := settle([]look{
		at(-time.Second, time.Second, nil), at(-time.Second, 0, errors.New("no")),
		at(time.Second, calm+1, nil), at(2*time.Second, calm, nil),
	}, over)
	if before == nil || before.P50 != 1000 || back != time.Second+calm+1 {
		t.Errorf("before %v, back after %v", before, back)
	}
	if _, back := settle([]look{at(time.Second, time.Second, errors.New("no"))}, over); back != 2*time.Second {
		t.Errorf("back after %v, with one that failed", back)
	}
}
