package sim_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/toys/chamber"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/sim"
)

// grouped is a run with contention for groups.
func grouped() sim.Config {
	return sim.Config{
		Config: protocol.Config{N: 6}, Groups: 3, Entries: []int{200}, Delay: exponential, Think: sim.Exponential(5 * time.Millisecond),
		Hold: sim.Exponential(4 * time.Millisecond),
	}
}

func TestGroupsAreJudged(t *testing.T) {
	for form, want := range map[chamber.Form]string{
		chamber.Sound:         "",
		chamber.Overtakes:     "", // nobody waits for ever when the others end
		chamber.OneByOne:      "",
		chamber.IgnoresGroups: history.Exclusion,
		chamber.AloneTogether: history.Exclusion,
		chamber.Unwanted:      history.WellFormed,
	} {
		for _, wants := range [][]protocol.Groups{nil, {"!w"}, {"1", "1", "1,2", "2", "!w", "!w,1"}} {
			c := grouped()
			if c.Wants = wants; wants != nil {
				c.Groups = 0
			}
			found := mustRun(t, chamber.Algorithm(form), c).ViolationsOf
			ok := want == "" && len(found) == 0 || want != "" && found[want] > 0 && len(found) == 1
			if form == chamber.AloneTogether && wants == nil || form == chamber.Unwanted && slices.Equal(wants, []protocol.Groups{"!w"}) {
				ok = len(found) == 0 // there is nothing that it does wrong
			}
			if !ok {
				t.Errorf("%q with %q: %v, want %q only", form, wants, found, want)
			}
		}
	}
}

// Whoever shares is inside together, as soon as a message there and back allows.
func TestTogether(t *testing.T) {
	c := grouped()
	c.Groups, c.Delay, c.Think, c.Hold = 1, sim.Constant(time.Millisecond), sim.Constant(10*time.Millisecond), sim.Constant(time.Second)
	r := mustRun(t, chamber.Algorithm(chamber.Sound), c)
	if r.Concurrency.Max != 6 || r.Sessions != 1 || r.Waiting.Max != 2 || r.SyncDelay.Count != 0 {
		t.Errorf("%+v", r)
	}
	if r := mustRun(t, chamber.Algorithm(chamber.OneByOne), c); r.Concurrency != (history.Concurrency{Mean: 1, Max: 1}) {
		t.Errorf("one by one: %+v", r.Concurrency)
	}
}

// A trace, and an event file, name what was wanted and what was granted.
func TestTraceOfGroups(t *testing.T) {
	var events bytes.Buffer
	w, err := history.NewWriter(&events, history.Header{Clock: history.Virtual})
	if err != nil {
		t.Fatal(err)
	}
	c := sim.Config{
		Config: protocol.Config{N: 2}, Wants: []protocol.Groups{"b,a", "!w"}, Entries: []int{1}, Think: sim.Constant(0), History: w,
	}
	same(t, trace(t, chamber.Algorithm(chamber.Sound), c), `
try p1 b,a
# p1 crit b
try p2 !w
at 1ms exit p1
# at 1ms p1 rem
at 1ms deliver p2 p1 REQUEST(!w)
at 2ms deliver p1 p2 GRANTED(!w)
# at 2ms p2 crit !w
at 3ms exit p2
# at 3ms p2 rem`)
	for _, line := range []string{
		`"do":"try","user":"p1","group":"b,a"}`, `"do":"crit","user":"p1","group":"b"}`,
		`"do":"try","user":"p2","group":"!w"}`, `"do":"crit","user":"p2","group":"!w"}`,
	} {
		if !strings.Contains(events.String(), line) {
			t.Errorf("%s\nhas no %s", &events, line)
		}
	}
}

// A history with groups that is read again is judged and measured as it was.
func TestHistoryOfGroups(t *testing.T) {
	for _, form := range []chamber.Form{chamber.Sound, chamber.AloneTogether, chamber.IgnoresGroups, chamber.Unwanted} {
		var events bytes.Buffer
		c := grouped()
		c.Wants, c.Groups = []protocol.Groups{"1", "1,2", "1,2", "2", "!w", "!w,1"}, 0
		c.History, _ = history.NewWriter(&events, history.Header{Clock: history.Virtual})
		r := mustRun(t, chamber.Algorithm(form), c)
		in, err := history.NewReader("run", &events)
		if err != nil {
			t.Fatal(err)
		}
		h, err := history.Read([]*history.Reader{in}, history.Bounds{})
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]uint64{}
		for _, v := range h.Verdicts {
			if v.Count > 0 {
				counts[v.Property] = v.Count
			}
		}
		m := h.Measures
		if !maps.Equal(counts, r.ViolationsOf) || m.Sessions != r.Sessions || m.Concurrency != r.Concurrency || m.SyncDelay != r.SyncDelay {
			t.Errorf("%q: %v %+v\nwant %v %+v", form, counts, m, r.ViolationsOf, r)
		}
	}
}

// lower is a run in which some who are alone come down, the writer to a group of its own.
func lower() sim.Config {
	return sim.Config{
		Config: protocol.Config{N: 4, Options: map[string]int64{"fence": sigma.FenceOn}}, Clients: 6, Entries: []int{100},
		Wants: []protocol.Groups{"!r", "!r", "!r", "r", "r", "!w"}, Downgrade: 0.5,
		Delay: exponential, Think: sim.Exponential(10 * time.Millisecond), Hold: sim.Exponential(5 * time.Millisecond),
	}
}

// judged runs a, and returns what it found, which is what its history shows, too.
func judged[M any](t *testing.T, a protocol.Algorithm[M], c sim.Config) sim.Result {
	t.Helper()
	var events bytes.Buffer
	c.History, _ = history.NewWriter(&events, history.Header{Clock: history.Virtual})
	r := mustRun(t, a, c)
	in, err := history.NewReader("run", &events)
	if err != nil {
		t.Fatal(err)
	}
	h, err := history.Read([]*history.Reader{in}, history.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range h.Verdicts {
		if v.Count != r.ViolationsOf[v.Property] {
			t.Errorf("%s is violated %d times in the history, and %d times in the run", v.Property, v.Count, r.ViolationsOf[v.Property])
		}
	}
	if h.Measures.Concurrency != r.Concurrency {
		t.Errorf("the history has %+v inside, and the run %+v", h.Measures.Concurrency, r.Concurrency)
	}
	return r
}

// Those who come down share from then on, and keep writers out until they leave.
func TestDowngrade(t *testing.T) {
	c := lower()
	if r := judged(t, sigma.Algorithm, c); r.ViolationCount > 0 || r.Downgrades < 150 || r.Downgrades > 250 {
		t.Errorf("%d of 400 came down, want half of them: %q", r.Downgrades, r.Violations)
	}
	c.AmnesiaEvery, c.Spaced, c.CrashEvery = 100*time.Millisecond, 1, 300*time.Millisecond
	c.PauseEvery, c.Lease = 50*time.Millisecond, 200*time.Millisecond
	if r := judged(t, sigma.Algorithm, c); r.ViolationCount > 0 || r.Downgrades == 0 || r.Amnesias == 0 || r.Crashes == 0 {
		t.Errorf("with faults, %d came down: %q", r.Downgrades, r.Violations)
	}
	c = lower()
	c.Clients, c.Wants, c.Think = 2, []protocol.Groups{"!r", "r"}, sim.Constant(0)
	together := mustRun(t, sigma.Algorithm, c).Concurrency.Max
	if c.Downgrade = 0; together < 2 || mustRun(t, sigma.Algorithm, c).Concurrency.Max != 1 {
		t.Errorf("%d are inside together where one comes down, or more than one where it does not", together)
	}
}

// A careless holder gives back what it has when it comes down.
type careless struct {
	protocol.Process[sigma.Message]
	out bool
}

func (p *careless) Unwrap() any { return p.Process }

func (p *careless) Step(ev protocol.Event[sigma.Message], out *protocol.Out[sigma.Message]) {
	switch {
	case ev.Kind == protocol.Downgrade:
		p.out, ev.Kind, ev.Data = true, protocol.Exit, ""
		p.Process.Step(ev, out)
		out.Effects = slices.DeleteFunc(out.Effects, func(e protocol.Effect[sigma.Message]) bool { return e.Do == protocol.Rem })
	case ev.Kind == protocol.Exit && p.out:
		p.out = false
		out.Rem()
	default:
		p.Process.Step(ev, out)
	}
}

// A writer beside those who came down is found.
func TestCarelessDowngrade(t *testing.T) {
	a := sigma.Algorithm
	a.New = func(id protocol.ID, c protocol.Config) protocol.Process[sigma.Message] {
		return &careless{Process: sigma.Algorithm.New(id, c)}
	}
	if r := judged(t, a, lower()); r.ViolationsOf[history.Exclusion] == 0 || len(r.ViolationsOf) > 1 {
		t.Errorf("%v, want exclusion", r.ViolationsOf)
	}
}

// Half of a hold is spent alone, and how long it is does not depend on that.
func TestTraceOfDowngrade(t *testing.T) {
	on := func(_ protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		switch ev.Kind {
		case protocol.Try:
			out.CritIn(protocol.Group(ev.Data), 0)
		case protocol.Exit:
			out.Rem()
		}
	}
	a := toys(protocol.Members, on)
	a.Shares = true
	c := sim.Config{
		Config: protocol.Config{N: 1}, Wants: []protocol.Groups{"!r"}, Entries: []int{1},
		Think: sim.Constant(0), Hold: sim.Constant(3 * time.Millisecond), Downgrade: 1,
	}
	same(t, trace(t, a, c), `
try p1 !r
# p1 crit !r
at 1.5ms downgrade p1
at 3ms exit p1
# at 3ms p1 rem`)
}

// A wish is what user number user wants the k-th time, with how long it held and thought.
type wish struct {
	user, k     int
	groups      string
	hold, think int64
}

// wishes are those of a run, from its history.
func wishes(t *testing.T, a protocol.Algorithm[chamber.Message], c sim.Config) map[wish]bool {
	t.Helper()
	var events bytes.Buffer
	c.History, _ = history.NewWriter(&events, history.Header{Clock: history.Virtual})
	mustRun(t, a, c)
	in, err := history.NewReader("run", &events)
	if err != nil {
		t.Fatal(err)
	}
	all, last, now := map[wish]bool{}, map[string]int64{}, map[string]wish{}
	for {
		e, err := in.Next()
		if err != nil || e.Do == history.End {
			return all
		}
		r := now[e.User]
		switch e.Do {
		case history.Try:
			r.k++
			r.groups = e.Group
			r.think = e.At - last[e.User]
		case history.Exit:
			r.hold = e.At - last[e.User]
		case history.Rem:
			fmt.Sscanf(e.User, "p%d", &r.user)
			all[r] = true
		}
		now[e.User], last[e.User] = r, e.At
	}
}

// Two algorithms with one seed see one workload.
func TestCommonWorkload(t *testing.T) {
	c := grouped()
	c.PerRequest, c.Popularity = 2, sim.Popularity{Alpha: 30, Beta: 70}
	want := wishes(t, chamber.Algorithm(chamber.Sound), c)
	if len(want) != 1200 {
		t.Fatalf("%d requests", len(want))
	}
	for _, form := range []chamber.Form{chamber.OneByOne, chamber.Overtakes} {
		if got := wishes(t, chamber.Algorithm(form), c); !maps.Equal(got, want) {
			t.Errorf("%q has another workload", form)
		}
	}
	if c.Seed++; maps.Equal(wishes(t, chamber.Algorithm(chamber.Sound), c), want) {
		t.Error("another seed has the same workload")
	}
}

// popularity counts how often each group is wanted.
func popularity(t *testing.T, c sim.Config) map[string]int {
	t.Helper()
	c.Entries = []int{1000}
	count := map[string]int{}
	for r := range wishes(t, chamber.Algorithm(chamber.Sound), c) {
		for g := range protocol.Groups(r.groups).All() {
			count[string(g)]++
		}
	}
	return count
}

func TestPopularity(t *testing.T) {
	for _, x := range []struct {
		p              sim.Popularity
		groups, number int
		want           []float64 // part of the requests that names group 1, 2, ..
	}{
		{sim.Popularity{}, 4, 1, []float64{.25, .25, .25, .25}},
		{sim.Popularity{Alpha: 20, Beta: 80}, 5, 1, []float64{.8, .05, .05, .05, .05}},
		{sim.Popularity{Alpha: 20, Beta: 80}, 2, 1, []float64{.8, .2}}, // one at least is popular
		{sim.Popularity{Alpha: 50, Beta: 50}, 4, 1, []float64{.25, .25, .25, .25}},
		{sim.Popularity{Alpha: 20, Beta: 80}, 1, 1, []float64{1}},
		{sim.Popularity{Alpha: 50, Beta: 100}, 4, 1, []float64{.5, .5, 0, 0}},
		{sim.Popularity{}, 4, 2, []float64{.5, .5, .5, .5}},
		{sim.Popularity{}, 3, 3, []float64{1, 1, 1}},
		{sim.Popularity{Alpha: 34, Beta: 100}, 3, 2, []float64{1, .5, .5}}, // the popular one is taken first
	} {
		c := grouped()
		c.Popularity, c.Groups, c.PerRequest = x.p, x.groups, x.number
		got := popularity(t, c)
		for i, want := range x.want {
			if part := float64(got[fmt.Sprint(i+1)]) / 6000; math.Abs(part-want) > 0.03 || (part == 0) != (want == 0) {
				t.Errorf("%+v: group %d has %v of the requests, want %v", x, i+1, part, want)
			}
		}
	}
}

// Who gave up wants the same the next time.
func TestGivingUpKeepsGroups(t *testing.T) {
	var wanted []string
	on := func(_ protocol.ID, ev protocol.Event[note], out *protocol.Out[note]) {
		switch ev.Kind {
		case protocol.Try:
			if wanted = append(wanted, ev.Data); len(wanted)%3 == 0 {
				out.CritIn(protocol.Group(ev.Data), 0)
			} else {
				out.Rem()
			}
		case protocol.Exit:
			out.Rem()
		}
	}
	a := toys(protocol.Members, on)
	a.Grouped = true
	mustRun(t, a, sim.Config{Config: protocol.Config{N: 1}, Groups: 1000, Entries: []int{20}})
	different := map[string]bool{}
	for i := range wanted {
		different[wanted[i]] = true
		if wanted[i] != wanted[i/3*3] {
			t.Errorf("try %d wants %s after %s", i, wanted[i], wanted[i-1])
		}
	}
	if len(wanted) != 60 || len(different) < 15 {
		t.Errorf("%q", wanted)
	}
}

func TestBadGroups(t *testing.T) {
	narrow := chamber.Algorithm(chamber.Sound)
	narrow.Several = false
	for want, c := range map[string]sim.Config{
		"-1 groups: want 1 to":                             {Groups: -1},
		"3 groups a request: want 1 to 2, of 2 groups":     {PerRequest: 3},
		"2 groups a request: its users want one at a":      {PerRequest: 2},
		"popularity 0,80: want percentages":                {Popularity: sim.Popularity{Beta: 80}},
		"popularity 20,101: want percentages":              {Popularity: sim.Popularity{Alpha: 20, Beta: 101}},
		"popularity NaN,1: want percentages":               {Popularity: sim.Popularity{Alpha: math.NaN(), Beta: 1}},
		"popularity 100,20: all requests are for all":      {Popularity: sim.Popularity{Alpha: 100, Beta: 20}},
		"want a all the time, or draw from 2 groups: want": {Wants: []protocol.Groups{"a"}, Groups: 2},
		"or draw from 1 a request, popularity 20,80: want": {
			Wants: []protocol.Groups{"1"}, PerRequest: 1, Popularity: sim.Popularity{Alpha: 20, Beta: 80},
		},
		"2 lists of wants for 3 users: want one for all": {Wants: []protocol.Groups{"1", "2"}},
		`bad groups "a,"`: {Wants: []protocol.Groups{"a,"}},
		"groups \"b,a\": its users want one group at a time": {Wants: []protocol.Groups{"b,a"}},
		"downgrade 0.5: its users cannot share what":         {Wants: []protocol.Groups{"!r"}, Downgrade: 0.5},
		"downgrade NaN: want a probability":                  {Downgrade: math.NaN()},
		"downgrade 2: want a probability":                    {Downgrade: 2},
		"bandwidth -1 kbit/ms: want":                         {Bandwidth: -1},
		"bandwidth NaN kbit/ms: want":                        {Bandwidth: math.NaN()},
		"bandwidth 1e-07 kbit/ms: want 1e-06 to 1e+06, o":    {Bandwidth: 1e-7},
	} {
		c.N = 3
		if _, err := sim.Run(narrow, c); !errors.Is(err, sim.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, wants := range [][]protocol.Groups{nil, {"r"}} {
		c := lower()
		c.Wants = wants
		if _, err := sim.Run(sigma.Algorithm, c); !errors.Is(err, sim.ErrConfig) || !strings.Contains(err.Error(), "downgrade 0.5: want users that") {
			t.Errorf("%q: %v, want users that come down", wants, err)
		}
	}
	for _, c := range []sim.Config{
		{Groups: 2}, {PerRequest: 1}, {Wants: []protocol.Groups{"1"}}, {Popularity: sim.Popularity{Alpha: 1, Beta: 1}},
	} {
		c.N = 3
		if _, err := sim.Run(ricartagrawala.Algorithm, c); !errors.Is(err, sim.ErrConfig) || !strings.Contains(err.Error(), "no groups") {
			t.Errorf("%v, want that there are no groups", err)
		}
	}
}
