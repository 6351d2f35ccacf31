package sim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/sim"
)

// A note is the only message of the toy algorithms.
type note struct{ Number uint64 }

// A reaction is the Step of a toy process: a function that a test writes down.
type reaction func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note])

type toy struct {
	id protocol.ID
	on reaction
}

func (p toy) Step(ev protocol.Event[note], out *protocol.Out[note]) { p.on(p.id, ev, out) }
func (p toy) State(*protocol.Codec)                                 {}

// toys is an algorithm of toy processes.
func toys(users protocol.Users, on reaction) protocol.Algorithm[note] {
	return protocol.Algorithm[note]{
		Info: protocol.Info{
			Name:      "toy",
			Users:     users,
			Messages:  []protocol.Message{{Name: "NOTE"}},
			Tolerates: protocol.Crash | protocol.Amnesia,
		},
		New: func(id protocol.ID, c protocol.Config) protocol.Process[note] { return toy{id, on} },
		Fields: func(m note, c *protocol.Codec) note {
			c.Uint(&m.Number)
			return m
		},
		KindOf: func(note) int { return 0 },
		Ints:   func(note) int { return 1 },
		Text:   func(m note) string { return fmt.Sprintf("NOTE(%d)", m.Number) },
	}
}

// grabber lets its user in at once, with no permission from anybody.
func grabber(token func() uint64) reaction {
	return func(_ protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		switch ev.Kind {
		case protocol.Try:
			out.Crit(token())
		case protocol.Exit:
			out.Rem()
		}
	}
}

func noToken() uint64 { return 0 }

func mustRun[M any](t testing.TB, a protocol.Algorithm[M], c sim.Config) sim.Result {
	t.Helper()
	r, err := sim.Run(a, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// trace returns the log of a run.
func trace[M any](t *testing.T, a protocol.Algorithm[M], c sim.Config) string {
	t.Helper()
	var b bytes.Buffer
	c.Trace = &b
	mustRun(t, a, c)
	return b.String()
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// What an algorithm tells those who give up is in the JSON of a run, and nothing is where it
// tells nothing, or only those who leave.
func TestGaveUpReasons(t *testing.T) {
	for _, test := range []struct {
		early, late protocol.Reason
		want        string
	}{
		{protocol.NoMajority, 0, `{"no majority of the processes is in reach":4}`},
		{0, 0, ""},
		{0, protocol.TooFew, ""},
	} {
		tries := 0
		r := mustRun(t, toys(protocol.Members, func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
			switch {
			case ev.Kind == protocol.Try && id == 0 && tries < 4:
				tries++
				out.GiveUp(test.early)
			case ev.Kind == protocol.Try:
				out.Crit(0)
			case ev.Kind == protocol.Exit:
				out.GiveUp(test.late)
			}
		}), sim.Config{Config: protocol.Config{N: 2}, Entries: []int{5}})
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		if got := string(fields["gave_up_reasons"]); got != test.want || r.ViolationCount > 0 {
			t.Errorf("told %d and %d: %s, want %s; %v", test.early, test.late, got, test.want, r.Violations)
		}
	}
}

func TestBrokenAlgorithmsAreCaught(t *testing.T) {
	tokens := uint64(1000)
	down := func() uint64 { tokens--; return tokens }
	for name, c := range map[string]struct {
		on   reaction
		n    int
		want string
	}{
		"no permission":  {grabber(noToken), 3, "exclusion"},
		"the same token": {grabber(func() uint64 { return 5 }), 1, "reuse"},
		"smaller tokens": {grabber(down), 1, "inversion"},
		"lets in twice": {func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
			grabber(noToken)(id, ev, out)
			if ev.Kind == protocol.Try {
				out.Crit(0)
			}
		}, 1, "well-formed"},
		"never answers": {func(protocol.ID, protocol.Event[note], *protocol.Out[note]) {}, 2, "stuck"},
		"sends to itself": {func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
			if ev.Kind == protocol.Start {
				out.Send(id, note{})
			}
			grabber(noToken)(id, ev, out)
		}, 1, "well-formed"},
		"sets a timer for now": {func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
			if ev.Kind == protocol.Start {
				out.SetTimer(1, 0, 1e6)
			}
			grabber(noToken)(id, ev, out)
		}, 1, "well-formed"},
		"panics": {func(_ protocol.ID, ev protocol.Event[note], _ *protocol.Out[note]) {
			if ev.Kind == protocol.Try {
				panic("toy: cannot be")
			}
		}, 1, "panic"},
		"is always busy": {func(_ protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
			if ev.Kind == protocol.Start || ev.Kind == protocol.Timeout {
				out.SetTimer(1, 1e6, 0)
			}
		}, 1, "stuck"},
	} {
		r := mustRun(t, toys(protocol.Members, c.on), sim.Config{
			Config: protocol.Config{N: c.n}, Entries: []int{10}, Think: sim.Constant(time.Millisecond), Patience: 10_000,
		})
		if r.ViolationsOf[c.want] == 0 || uint64(len(r.ViolationsOf)) != 1 {
			t.Errorf("%s: got %v, want %s only", name, r.Violations, c.want)
		}
	}
}

func TestStuckNamesWhoTries(t *testing.T) {
	on := func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		if id != 5 { // c2
			grabber(noToken)(id, ev, out)
		}
	}
	r := mustRun(t, toys(protocol.Clients, on), sim.Config{Config: protocol.Config{N: 4}, Clients: 3, Hold: sim.Constant(0)})
	if len(r.Violations) == 0 || !strings.HasSuffix(r.Violations[0], "stuck: nothing more will happen, and c2 waits") {
		t.Error(r.Violations)
	}
}

// A user whose try gave up tries again after a think time.
func TestGivingUp(t *testing.T) {
	tries := 0
	on := func(_ protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		switch ev.Kind {
		case protocol.Try:
			if tries++; tries%3 == 0 {
				out.Crit(0)
			} else {
				out.Rem()
			}
		case protocol.Exit:
			out.Rem()
		}
	}
	r := mustRun(t, toys(protocol.Members, on), sim.Config{
		Config: protocol.Config{N: 1}, Entries: []int{5}, Think: sim.Constant(time.Second),
	})
	if r.Entries != 5 || r.GaveUp != 10 || r.ViolationCount != 0 || r.VirtualSeconds != 14.005 {
		t.Errorf("%+v", r)
	}
}

// An ejected user exits at once, whatever is left of its hold time, and that
// later exit never comes.
func TestEjected(t *testing.T) {
	on := func(_ protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		switch ev.Kind {
		case protocol.Try:
			out.Crit(0)
			out.SetTimer(1, 3e6, 0)
		case protocol.Timeout:
			out.Ejected()
		case protocol.Exit:
			out.Rem()
		}
	}
	same(t, trace(t, toys(protocol.Members, on), sim.Config{
		Config: protocol.Config{N: 1}, Entries: []int{2},
		Think: sim.Constant(time.Millisecond), Hold: sim.Constant(9 * time.Millisecond),
	}), `
try p1
# p1 crit
at 3ms timeout p1 1
# at 3ms p1 ejected
at 3ms exit p1
# at 3ms p1 rem
at 4ms try p1
# at 4ms p1 crit
at 7ms timeout p1 1
# at 7ms p1 ejected
at 7ms exit p1
# at 7ms p1 rem`)
}

// A timer that is set again fires once, at its last time, earlier or later; one
// that is stopped does not fire.
func TestTimers(t *testing.T) {
	on := func(_ protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		switch ev.Kind {
		case protocol.Try:
			out.SetTimer(1, 5e6, 0)
			out.SetTimer(1, 9e6, 0)
			out.SetTimer(2, 9e6, 0)
			out.SetTimer(2, 4e6, 0)
			out.SetTimer(3, 2e6, 0)
			out.SetTimer(4, 1e6, 0)
			out.StopTimer(4)
			out.SetTimer(5, 1e6, 0)
			out.StopTimer(5)
			out.SetTimer(5, 3e6, 0)
		case protocol.Timeout:
			if ev.Timer == 3 {
				out.SetTimer(3, 10e6, 0)
			}
			if ev.Timer == 1 {
				out.Crit(0)
			}
		case protocol.Exit:
			out.Rem()
		}
	}
	same(t, trace(t, toys(protocol.Members, on), sim.Config{
		Config: protocol.Config{N: 1}, Entries: []int{1}, Hold: sim.Constant(5 * time.Millisecond),
	}), `
try p1
at 2ms timeout p1 3
at 3ms timeout p1 5
at 4ms timeout p1 2
at 9ms timeout p1 1
# at 9ms p1 crit
at 12ms timeout p1 3
at 14ms exit p1
# at 14ms p1 rem`)
}

func TestTimerJitterIsUniform(t *testing.T) {
	const n = 10_000
	var sum, least, most int64 = 0, 1 << 60, 0
	last, k := int64(0), 0
	on := func(_ protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		if d := ev.Now - last; ev.Kind == protocol.Timeout {
			sum, least, most = sum+d, min(least, d), max(most, d)
		}
		if last = ev.Now; k == n {
			out.Crit(0)
		} else if ev.Kind != protocol.Start && ev.Kind != protocol.Exit {
			out.SetTimer(1, 1000, 100)
		}
		if ev.Kind == protocol.Exit {
			out.Rem()
		}
		if ev.Kind == protocol.Timeout {
			k++
		}
	}
	mustRun(t, toys(protocol.Members, on), sim.Config{Config: protocol.Config{N: 1}, Entries: []int{1}})
	if mean := float64(sum) / n; least != 1000 || most != 1100 || mean < 1048 || mean > 1052 {
		t.Errorf("from %d to %d, mean %v", least, most, mean)
	}
}

// Each client sends 50 numbered notes at once when it tries.
func TestChannels(t *testing.T) {
	for _, fifo := range []bool{true, false} {
		next, disorder, got := map[protocol.ID]uint64{}, 0, 0
		on := func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
			switch ev.Kind {
			case protocol.Receive:
				got++
				if ev.Msg.Number != next[ev.From] {
					disorder++
				}
				next[ev.From] = ev.Msg.Number + 1
			case protocol.Try:
				for k := range uint64(50) {
					out.Send(0, note{k})
				}
				out.SetTimer(1, int64(time.Second), 0)
			case protocol.Timeout:
				out.Crit(0)
			case protocol.Exit:
				out.Rem()
			}
		}
		mustRun(t, toys(protocol.Clients, on), sim.Config{
			Config: protocol.Config{N: 1}, Clients: 3, Entries: []int{1}, FIFO: fifo,
			Delay: sim.Exponential(time.Millisecond), Think: sim.Constant(0), Hold: sim.Constant(0),
		})
		if got != 150 || fifo && disorder > 0 || !fifo && disorder < 50 {
			t.Errorf("fifo=%v: %d notes, %d out of order", fifo, got, disorder)
		}
	}
}

// Own clocks are off by at most ClockOffset, differ, and never go backwards in
// one life; an incarnation is the clock at the start.
func TestClocks(t *testing.T) {
	const bound = int64(50 * time.Millisecond)
	last := map[protocol.ID]int64{}
	offsets := map[int64]bool{}
	incs := map[uint64]bool{}
	var clocks []int64
	on := func(id protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		if ev.Kind == protocol.Start {
			offsets[ev.Now] = true
			if ev.Arg != uint64(ev.Now) || incs[ev.Arg] {
				t.Errorf("incarnation %d at %d", ev.Arg, ev.Now)
			}
			incs[ev.Arg] = true
			last[id] = ev.Now
		}
		if ev.Now < last[id] {
			t.Errorf("the clock of %d goes from %d to %d", id, last[id], ev.Now)
		}
		last[id] = ev.Now
		clocks = append(clocks, ev.Now)
		grabber(noToken)(id, ev, out)
	}
	a := toys(protocol.Clients, on)
	a.Detector = protocol.LeaseDetector
	mustRun(t, a, sim.Config{
		Config: protocol.Config{N: 4}, Clients: 1, Entries: []int{1000},
		ClockOffset: time.Duration(bound), AmnesiaEvery: time.Second, Think: sim.Constant(10 * time.Millisecond),
	})
	if len(offsets) < 10 {
		t.Errorf("%d different clocks at a start", len(offsets))
	}
	base := int64(time.Hour)
	if first := clocks[0]; first < base-bound || first > base+bound {
		t.Errorf("a clock began at %d", first)
	}
}

func TestTimeRunsOut(t *testing.T) {
	r := mustRun(t, toys(protocol.Members, grabber(noToken)), sim.Config{
		Config: protocol.Config{N: 1}, Think: sim.Constant(1000 * 24 * time.Hour), Entries: []int{1000},
	})
	if r.ViolationsOf["time"] != 1 || r.ViolationCount != 1 || r.Entries > 107 {
		t.Errorf("%d entries, %v", r.Entries, r.Violations)
	}
}
