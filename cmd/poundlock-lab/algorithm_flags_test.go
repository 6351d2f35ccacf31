package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/hunt"
	"github.com/poundlock/poundlock/verify/sim"
)

func TestWants(t *testing.T) {
	users := []string{"p1", "p2", "p3"}
	for _, c := range []struct {
		flags []string
		want  []protocol.Groups // nil: an error with text
		text  string
	}{
		{flags: []string{"b,a"}, want: []protocol.Groups{"b,a"}},
		{flags: []string{"p2=!w", "a"}, want: []protocol.Groups{"a", "!w", "a"}},
		{flags: []string{"p1=a", "p2=b", "p3=c"}, want: []protocol.Groups{"a", "b", "c"}},
		{flags: []string{"p1=a"}, text: "does not say what p2 wants"},
		{flags: []string{"a", "p4=b"}, text: `no user "p4": users are p1 to p3`},
		{flags: []string{"a,"}, text: `bad groups "a,"`},
		{flags: []string{"p1="}, text: `bad groups ""`},
	} {
		f := algorithmFlags{sets: c.flags}
		lists, err := f.wants(users)
		got := slices.Concat(lists...)
		if c.want != nil && (err != nil || !slices.Equal(got, c.want)) ||
			c.want == nil && (err == nil || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%q: %q, %v; want %q %s", c.flags, got, err, c.want, c.text)
		}
	}
	if got, err := new(algorithmFlags).wants(users); got != nil || err != nil {
		t.Error(got, err)
	}
}

func TestPopularityFlag(t *testing.T) {
	if p, err := popularity("20,80"); err != nil || p != (sim.Popularity{Alpha: 20, Beta: 80}) {
		t.Error(p, err)
	}
	for _, text := range []string{"", "20", "20,", "a,80", "20,80,1", "0,0"} {
		if _, err := popularity(text); err == nil || !strings.Contains(err.Error(), "want two percentages") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An option whose values have names is chosen by name, and shown by it.
func TestNamedValues(t *testing.T) {
	i := protocol.Info{Name: "toy", Options: []protocol.Option{
		{Name: "selection", Default: func(protocol.Config) int64 { return 0 }, Values: []string{"priority", "fifo"}},
		{Name: "wait", Default: func(protocol.Config) int64 { return 0 }},
	}}
	for _, c := range []struct {
		args []string
		want map[string]int64
		text string
	}{
		{args: []string{"--option", "selection=fifo"}, want: map[string]int64{"selection": 1}},
		{args: []string{"--option", "selection=1", "--option", "wait=2us"}, want: map[string]int64{"selection": 1, "wait": 2000}},
		{args: []string{"--selection", "fifo"}, want: map[string]int64{"selection": 1}},
		{args: []string{"--selection", "best"}, text: `--selection "best": want one of priority, fifo`},
		{args: []string{"--option", "selection=best"}, text: `--option "selection=best": want one of priority, fifo`},
		{args: []string{"--option", "wait=fifo"}, text: "want NAME=VALUE with a number or a duration"},
		{args: []string{"--admission", "open"}, text: "toy has no option admission; it has selection, wait"},
		{
			args: []string{"--selection", "fifo", "--option", "selection=priority"},
			text: `--option "selection=priority" and --selection "fifo" are about one option; give it once`,
		},
		{
			args: []string{"--option", "wait=1", "--option", "wait=2"},
			text: `--option "wait=1" and --option "wait=2" are about one option; give it once`,
		},
	} {
		var f modelFlags
		set := inOrder(f.register)
		if err := set.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		got, err := f.system(i)
		if c.want != nil && (err != nil || !reflect.DeepEqual(got.Options, c.want)) ||
			c.want == nil && (err == nil || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%q: %v, %v; want %v %s", c.args, got.Options, err, c.want, c.text)
		}
	}
	if err := i.CheckOptions(protocol.Config{Options: map[string]int64{"selection": 2}}); err == nil ||
		err.Error() != "option selection=2: want one of priority, fifo" {
		t.Error(err)
	}
	if got := i.Options[0].Text(1) + i.Options[0].Text(2) + i.Options[1].Text(1); got != "fifo21" {
		t.Error(got)
	}
}

// The command that repeats a timed finding says what each user wants.
func TestTimedFindingsWant(t *testing.T) {
	v := hunt.Violation{Timed: true, Simulation: sim.Config{
		Config: protocol.Config{N: 2}, Entries: []int{1}, Wants: []protocol.Groups{"a,b", "!w"},
		Delay: sim.Constant(1), Think: sim.Constant(1), Hold: sim.Constant(1),
	}}
	for _, c := range []struct {
		users protocol.Users
		want  []string
	}{{protocol.Members, []string{"p1=a,b", "p2=!w"}}, {protocol.Clients, []string{"c1=a,b", "c2=!w"}}} {
		command, err := commandOf(protocol.Info{Name: "toy", Users: c.users}, false, v)
		for _, set := range c.want {
			if err != nil || !strings.Contains(command, set) {
				t.Errorf("%s, %v: want --wants %s", command, err, set)
			}
		}
	}
}

// The command that makes a timed finding again reads back whatever a hunt draws of its faults.
func TestTimedFindingsFaults(t *testing.T) {
	const d = 17 * time.Millisecond
	drawn := sim.Config{
		Config: protocol.Config{N: 3}, Entries: []int{2}, Delay: sim.Constant(1), Think: sim.Constant(1), Hold: sim.Constant(1),
		Seed: 5, CrashEvery: d, RecoverEvery: 2 * d, PauseEvery: 3 * d, PartitionEvery: 4 * d, AmnesiaEvery: 5 * d, FaultsUntil: 6 * d,
		Detect: 7 * d, Lease: 8 * d, ClockOffset: 9 * d, Loss: 0.25, Dup: 0.5, Spaced: 2, Patience: 1234,
		Downgrade: 0.75,
	}
	command, err := commandOf(protocol.Info{Name: "toy"}, true, hunt.Violation{Timed: true, Property: hunt.Stuck, Simulation: drawn})
	if err != nil {
		t.Fatal(err)
	}
	var f simFlags
	if err := inOrder(f.register).Parse(strings.Fields(command)[3:]); err != nil {
		t.Fatal(command, err)
	}
	got, want := reflect.ValueOf(f.config), reflect.ValueOf(drawn)
	for k := range want.NumField() {
		name := want.Type().Field(k).Name
		if slices.Contains([]string{"Config", "Entries", "Delay", "Think", "Hold"}, name) || want.Field(k).IsZero() {
			continue // the first ones are read later
		}
		if !reflect.DeepEqual(got.Field(k).Interface(), want.Field(k).Interface()) {
			t.Errorf("%s: %v, want %v of %s", name, got.Field(k), want.Field(k), command)
		}
	}
}

// That of a run in which somebody comes down lets users do so.
func TestFindingsDowngrade(t *testing.T) {
	for _, comes := range []bool{false, true} {
		v := hunt.Violation{Check: check.Config{Config: protocol.Config{N: 2}, Properties: []string{check.Exclusion}, Downgrade: comes}}
		command, err := commandOf(protocol.Info{Name: "toy"}, false, v)
		if err != nil || strings.Contains(command+" ", " --downgrade ") != comes {
			t.Errorf("%s, %v: with --downgrade: %v", command, err, comes)
		}
	}
}

// It also says how many operations there are, where those are not the default.
func TestTimedFindingsOperations(t *testing.T) {
	for operations, want := range map[int]string{0: " --operations 0", 1: "", 3: " --operations 3"} {
		v := hunt.Violation{Timed: true, Simulation: sim.Config{
			Config: protocol.Config{N: 2}, Entries: []int{1}, Operations: []int{operations},
			Delay: sim.Constant(1), Think: sim.Constant(1), Hold: sim.Constant(1),
		}}
		command, err := commandOf(protocol.Info{Name: "toy", Weak: true}, false, v)
		if err != nil || strings.Contains(command, "--operations") != (want != "") || !strings.Contains(command, want) {
			t.Errorf("%s, %v: want%s of %d", command, err, want, operations)
		}
	}
}

// Flags that contradict each other are refused, with both of them in the text.
func TestContradictions(t *testing.T) {
	for _, c := range []struct{ args, text string }{
		{"sim tokengme --selection fifo --option selection=largest", `--option "selection=largest" and --selection "fifo" are about one option`},
		{"check tokengme --option admission=strict --admission open", `--option "admission=strict" and --admission "open" are about one option`},
		{"hunt tokengme --runs 1 --selection fifo --option selection=fifo", `--option "selection=fifo" and --selection "fifo" are about one option`},
		{"check sigma --fence on --option fence=0", `--option "fence=0" and --fence "on" are about one option`},
		{"sim sigma --quorum 3 --option quorum=4", `--option "quorum=4" and --quorum "3" are about one option`},
		{"check ra1 --groups 2 --wants a", `--groups 2 and --wants "a" say both what users want`},
		{"check ra1 --groups 0", "--groups 0: want at least 1"},
		{"sim ra1 --groups 2 --wants a", "users want a all the time, or draw from 2 groups: want one of the two"},
		{"sim ra1 --popularity 100,20", "popularity 100,20: all requests are for all groups"},
		{"hunt all --selection fifo", `--selection: not with "all"`},
	} {
		if out, code := execute(strings.Fields(c.args)...); code != cli.ExitUsage || !strings.Contains(string(out), c.text) {
			t.Errorf("poundlock %s: status %d, %s; want %d, %s", c.args, code, out, cli.ExitUsage, c.text)
		}
	}
	for _, args := range []string{
		"sim tokengme --entries 1 --selection fifo --option admission=strict",
		"sim sigma --entries 1 --clients 2 --quorum 3 --fence on --option check=0",
		"sim ra1 --entries 1 --popularity 100,100",
	} {
		if out, code := execute(strings.Fields(args)...); code != 0 {
			t.Errorf("poundlock %s: status %d, %s", args, code, out)
		}
	}
}

// A finding that is known of a form says so, and how to go on; the command that makes it
// again has all of what was given to the hunt.
func TestKnownFindings(t *testing.T) {
	t.Chdir(t.TempDir())
	args := strings.Fields("hunt tokengme --variant clients --selection fifo --runs 300")
	out, code := execute(args...)
	for _, text := range []string{
		"violated: concurrent-entry", "known      this form lacks concurrent-entry; --known goes on\n", "--selection fifo",
	} {
		if code != cli.ExitViolated || !strings.Contains(string(out), text) {
			t.Errorf("status %d, want %d and %q:\n%s", code, cli.ExitViolated, text, out)
		}
	}
	if out, code := execute(append(args, "--known")...); code != 0 {
		t.Errorf("--known: status %d\n%s", code, out)
	}
	spoil(t)
	if out, code := execute("hunt", "mute", "--runs", "1000"); code != cli.ExitViolated || strings.Contains(string(out), "--known") {
		t.Errorf("status %d: a finding that is news\n%s", code, out)
	}
}
