package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/wme"
	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/lane"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/catalog"
	"github.com/poundlock/poundlock/verify/hunt"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
)

// execute runs a command in this process. It returns the exit status.
func execute(args ...string) (out []byte, code int) {
	var b bytes.Buffer
	root := program().Root(&b)
	root.SetArgs(args)
	err := root.Execute()
	if status := new(cli.Status); errors.As(err, &status) {
		code = status.Code
		fmt.Fprint(&b, status.Err)
	} else if err != nil {
		code = cli.ExitUsage
	}
	return b.Bytes(), code
}

// A spoiled process answers no REQUEST, or each at once.
type spoiled struct {
	protocol.Process[ricartagrawala.Message]
	answers bool
}

func (p spoiled) Step(ev protocol.Event[ricartagrawala.Message], out *protocol.Out[ricartagrawala.Message]) {
	if ev.Kind != protocol.Receive || ev.Msg.Kind != ricartagrawala.Request {
		p.Process.Step(ev, out)
	} else if p.answers {
		out.Send(ev.From, ricartagrawala.Message{Kind: ricartagrawala.Reply, Time: ev.Msg.Time})
	}
}

// A hasty process says that an operation is done before anybody has heard of it.
type hasty struct{ protocol.Process[wme.Message] }

func (p hasty) Step(ev protocol.Event[wme.Message], out *protocol.Out[wme.Message]) {
	if ev.Kind == protocol.Issue {
		out.Outcome()
		return
	}
	p.Process.Step(ev, out)
}

// spoil adds broken algorithms to the catalog for a test.
func spoil(t *testing.T) {
	t.Helper()
	before := catalog.All
	t.Cleanup(func() { catalog.All = before })
	add := func(name string, change func(*protocol.Algorithm[ricartagrawala.Message])) {
		a := ricartagrawala.Algorithm
		a.Name, a.Ordered = name, false
		change(&a)
		catalog.All = append(slices.Clip(catalog.All), catalog.Of(a))
	}
	for name, answers := range map[string]bool{"mute": false, "generous": true} {
		add(name, func(a *protocol.Algorithm[ricartagrawala.Message]) {
			create := a.New
			a.New = func(id protocol.ID, c protocol.Config) protocol.Process[ricartagrawala.Message] {
				return spoiled{create(id, c), answers}
			}
			a.MapState, a.MapMsg, a.Bounds, a.Invariants = nil, nil, nil, nil
		})
	}
	add("reckless", func(a *protocol.Algorithm[ricartagrawala.Message]) {
		a.Tolerates |= protocol.Loss | protocol.Duplication // which it does not
	})
	w := wme.Second
	create := w.New
	w.Name, w.Moot, w.Unsettled = "hasty", nil, nil
	w.New = func(id protocol.ID, c protocol.Config) protocol.Process[wme.Message] { return hasty{create(id, c)} }
	catalog.All = append(slices.Clip(catalog.All), catalog.Of(w))
}

// Every command that a hunt prints is accepted, and shows the same again.
func TestHuntCommands(t *testing.T) {
	spoil(t)
	hunts, seeds := []string{
		"sigma -n 4 --fence piggyback", "sigma --fence piggyback --link",
		"mute", "mute --link", "generous -n 5", "generous --link", "reckless", "hasty", "hasty --operations 3",
	}, []string{"1"}
	if !lane.Long.Runs() {
		t.Log("SHORTENED to a few hunts with one seed: TEST_LANE=long has more of them, with eight seeds")
	} else {
		hunts = append(hunts,
			"sigma --fence no-floor",
			"sigma -n 2 --quorum 1 --option check=0",
			"sigma -n 2 --quorum 1 --option check=20ms --link",
			"sigma --variant literal -n 4 --quorum 2 --channels fifo",
			"sigma -n 4 --clients 5 --beyond 1",
		)
		seeds = []string{"1", "2", "3", "4", "5", "6", "7", "8"}
	}
	timed, lossy := 0, 0
	for _, args := range hunts {
		for _, seed := range seeds {
			t.Run(args+" --seed "+seed, func(t *testing.T) {
				t.Chdir(t.TempDir())
				words := append([]string{"hunt"}, strings.Fields(args)...)
				found := violates(t, append(words, "--runs", "3000", "--seed", seed)...)
				if v := found.Violations[0]; v.Timed {
					timed++
					if strings.Contains(found.Replay, "--loss") || strings.Contains(found.Replay, "--dup") {
						lossy++
					}
					simulates(t, found.Replay, v.Property)
				} else {
					replays(t, found, v.Property)
				}
				again := violates(t, strings.Fields(found.Repeat)[1:]...)
				if !reflect.DeepEqual(again.Violations, found.Violations) || again.Replay != found.Replay {
					t.Errorf("found %+v\nby %s: %+v", found.Violations, found.Repeat, again.Violations)
				}
			})
		}
	}
	if timed == 0 || lossy == 0 {
		t.Errorf("%d simulations, %d with lossy channels: choose other hunts", timed, lossy)
	}
}

// violates makes a hunt that finds something.
func violates(t *testing.T, args ...string) huntResult {
	t.Helper()
	out, code := execute(append(args, "--trace", ".", "--json")...)
	r := huntResult{}
	if code == cli.ExitViolated {
		out, _, _ = bytes.Cut(out, []byte("\n}"))
		out = append(out, "\n}"...)
	}
	if err := json.Unmarshal(out, &r); err != nil || len(r.Violations) != 1 {
		t.Fatalf("poundlock %s: status %d, %v\n%s", strings.Join(args, " "), code, err, out)
	}
	if !r.Violations[0].Replayed {
		t.Errorf("poundlock %s: %+v is not replayed", strings.Join(args, " "), r.Violations[0])
	}
	return r
}

func simulates(t *testing.T, command, property string) {
	t.Helper()
	out, code := execute(append(strings.Fields(command)[1:], "--json")...)
	out, _, _ = bytes.Cut(out, []byte("\n}"))
	r := sim.Result{}
	err := json.Unmarshal(append(out, "\n}"...), &r)
	named := property
	if property == "model" {
		named = "panic"
	}
	if code != cli.ExitViolated || err != nil || r.ViolationsOf[named] == 0 {
		t.Errorf("%s: status %d, %v, want %s\n%s", command, code, err, property, out)
	}
}

// replays replays the file of a finding, and takes its steps in the check that the file
// names.
func replays(t *testing.T, found huntResult, property string) {
	t.Helper()
	if out, code := execute(strings.Fields(found.Replay)[1:]...); code != cli.ExitViolated || !bytes.Contains(out, []byte(property)) {
		t.Errorf("%s: status %d, want %s\n%s", found.Replay, code, property, out)
	}
	text, err := os.ReadFile(found.Scenario)
	if err != nil {
		t.Fatal(err)
	}
	check := scenario.Command(string(text))
	if property == hunt.Stuck || slices.Contains(strings.Fields(string(text)), "loop") {
		return // the steps lead to where it begins
	}
	if out, code := execute(append(check, "--scenario", found.Scenario)...); code != cli.ExitViolated || !bytes.Contains(out, []byte(property)) {
		t.Errorf("poundlock %s: status %d, want %s\n%s", strings.Join(check, " "), code, property, out)
	}
}
