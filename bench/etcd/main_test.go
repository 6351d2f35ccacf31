package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
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

// Every load runs in both systems, and leaves neither data nor processes behind. The
// windows are too short for figures.
func TestCompare(t *testing.T) {
	disk := t.TempDir()
	r, err := compare(t.Context(), 1, 100*time.Millisecond, 1, disk, "")
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(disk + "/*"); len(left) > 0 {
		t.Errorf("data is left: %v", left)
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
	if err := json.Unmarshal(object.Bytes(), &again); err != nil || len(again.Rows) != len(rivalries()) {
		t.Fatalf("%d rows, %v", len(again.Rows), err)
	}
	holds := true
	for _, x := range again.Rows {
		if x.Rates[ours] <= 0 || x.Rates[onDisk] <= 0 {
			t.Errorf("%s: %v", x.Load, x.Rates)
		}
		if ratio := x.Rates[ours] / x.Rates[onDisk]; ratio < 0.999*x.Ratios[onDisk] || ratio > 1.001*x.Ratios[onDisk] {
			t.Errorf("%s: the ratio %v of %v", x.Load, x.Ratios, x.Rates)
		}
		holds = holds && x.Ratios[onDisk] >= x.Claimed
	}
	if holds != again.Holds {
		t.Errorf("holds: %v", again.Holds)
	}
}

func TestWithin(t *testing.T) {
	r := &result{Rows: []row{
		{Ratios: map[string]float64{onDisk: 12}, Best: 12, Claimed: 5},
		{Ratios: map[string]float64{onDisk: 5}, Best: 7, Claimed: 10},
	}}
	if r.within(1) || !r.within(0.6) || r.within(0.8) {
		t.Error("7 is 0.7 of the 10 that are claimed")
	}
	if r.Rows[1].Ratios[onDisk] = 10; !r.within(1) {
		t.Error("10 is what is claimed")
	}
}
