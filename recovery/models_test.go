package recovery

import (
	"os"
	"testing"

	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/check"
	"github.com/poundlock/poundlock/protocol"
)

// The wrapper keeps every property of Suzuki-Kasami through a crash, a crash and a join, and a
// session that breaks, at any moment.
func TestModels(t *testing.T) {
	config := func(n int, entries ...int) check.Config {
		return check.Config{Config: protocol.Config{N: n}, Entries: entries, Properties: []string{"all"}, MaxMemory: 3 << 30}
	}
	for _, m := range []struct {
		name             string
		c                check.Config
		crash, back, cut int
		full             bool
	}{
		{name: "no fault", c: config(3, 1)},
		{name: "breaks of two", c: config(2, 1), cut: 2},
		{name: "a crash", c: config(3, 1), crash: 1},
		{name: "a break, no user", c: config(3, 0), cut: 1},
		{name: "a break", c: config(3, 1, 0, 0), cut: 1, full: true},
		{name: "a break", c: config(3, 0, 1, 0), cut: 1, full: true},
		{name: "a break", c: config(3, 0, 0, 1), cut: 1, full: true},
		{name: "a break", c: config(3, 1, 1, 0), cut: 1, full: true},
		{name: "a break", c: config(3, 1), cut: 1, full: true},
		{name: "a crash and a join, no user", c: config(3, 0), crash: 1, back: 1},
		{name: "a crash and a join", c: config(3, 0, 0, 1), crash: 1, back: 1, full: true},
		{name: "a crash and a join", c: config(3, 1, 0, 0), crash: 1, back: 1, full: true},
	} {
		if m.full && os.Getenv("POUNDLOCK_FULL") == "" {
			t.Logf("SHORTENED: %s with entries %v takes long; POUNDLOCK_FULL=1 explores it", m.name, m.c.Entries)
			continue
		}
		m.c.Crash, m.c.Recover, m.c.Suspect = m.crash, m.back, m.cut
		v, err := check.Run(Wrap(suzukikasami.Algorithm), m.c)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		t.Logf("%s: %s in %d states, %.1f s: %s", m.name, v.Verdict, v.States, v.Seconds, v.Bounds)
		if v.Verdict != check.Holds {
			t.Errorf("%s: %s is %s: %s", m.name, v.Property, v.Verdict, v.Reason)
			if v.Run != nil {
				for _, e := range v.Run.Steps {
					t.Log(e.Line, e.Did())
				}
			}
		}
	}
}
