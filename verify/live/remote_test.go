package live

import (
	"bytes"
	"maps"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/poundlock/poundlock/algo/algotest/toys/chamber"
	"github.com/poundlock/poundlock/algo/ricartagrawala"
	"github.com/poundlock/poundlock/algo/sigma"
	"github.com/poundlock/poundlock/algo/suzukikasami"
	"github.com/poundlock/poundlock/protocol"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/scenario"
	"github.com/poundlock/poundlock/verify/sim"
	"github.com/poundlock/poundlock/wrap/membership"
)

func mustDrive[M any](t *testing.T, name string, a protocol.Algorithm[M], c sim.Config) sim.Result {
	t.Helper()
	r, err := Run(t.Context(), a, c, program(name))
	if err != nil {
		t.Fatal(err)
	}
	if r.On != sim.OnProcesses {
		t.Errorf("on %q", r.On)
	}
	return r
}

// Processes that are programs of their own do what those of one program do.
func TestProcesses(t *testing.T) {
	r := mustDrive(t, "ricart-agrawala", ricartagrawala.Algorithm, brief())
	want, err := sim.Run(ricartagrawala.Algorithm, brief())
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(r.MessagesByKind, want.MessagesByKind) || r.Entries != 12 || r.ViolationCount != 0 {
		t.Errorf("%+v\nwant %+v", r, want)
	}

	c := brief()
	c.N, c.Clients, c.Down, c.Downgrade, c.Wants = 4, 3, []protocol.ID{3}, 1, []protocol.Groups{"!r", "r", "r"}
	c.Hold = sim.Constant(5 * time.Millisecond)
	if r := mustDrive(t, "sigma", sigma.Algorithm, c); r.Entries != 12 || r.ViolationCount != 0 || r.Downgrades != 4 || r.Sessions == 0 {
		t.Errorf("%+v", r)
	}

	c = brief()
	c.N, c.Clients, c.Entries, c.Lease = 4, 3, []int{20}, 200*time.Millisecond
	c.Think = sim.Constant(5 * time.Millisecond)
	c.Faults = []scenario.Step{
		at(20, scenario.Partition, 50*time.Millisecond, 1, 5), at(30, scenario.Crash, 0, 4), at(40, scenario.Amnesia, 0, 0),
		at(60, scenario.Drain, 0, 3),
	}
	if r = mustDrive(t, "sigma", sigma.Algorithm, c); r.Entries < 60 || r.Crashes != 1 || r.Amnesias != 1 || r.ViolationCount != 0 {
		t.Errorf("%+v", r)
	}

	c = brief()
	c.Entries, c.Lease, c.Hold = []int{60}, 200*time.Millisecond, sim.Constant(5*time.Millisecond)
	c.Faults = []scenario.Step{at(30, scenario.Crash, 0, 2), at(40, scenario.Recover, 0, 2)}
	r = mustDrive(t, "suzuki-kasami/recovery", membership.Wrap(suzukikasami.Algorithm), c)
	if r.Entries < 180 || r.Crashes != 1 || r.Recoveries != 1 || r.ViolationCount != 0 {
		t.Errorf("%+v", r)
	}
}

// What goes wrong in a program of its own is noticed, too.
func TestBrokenProcesses(t *testing.T) {
	c := brief()
	c.Wants, c.Entries, c.Hold = []protocol.Groups{"!w"}, []int{2}, sim.Constant(50*time.Millisecond)
	if r := mustDrive(t, "chamber", chamber.Algorithm(chamber.IgnoresGroups), c); r.ViolationsOf[history.Exclusion] == 0 {
		t.Errorf("%v, want a violation of exclusion", r.Violations)
	}

	c = brief()
	c.Entries = []int{2}
	if r := mustDrive(t, "breaking", breaking(), c); r.ViolationsOf["node"] == 0 || !strings.Contains(r.Violations[0], "broken") {
		t.Errorf("violations %v", r.Violations)
	}

	killed := program("ricart-agrawala")
	var victim *exec.Cmd
	c.Entries, c.Hold = []int{1000}, sim.Constant(10*time.Millisecond)
	time.AfterFunc(500*time.Millisecond, func() { _ = victim.Process.Kill() })
	r, err := Run(t.Context(), ricartagrawala.Algorithm, c, func() *exec.Cmd {
		if victim == nil {
			victim = killed()
			return victim
		}
		return killed()
	})
	if err != nil || r.ViolationsOf["node"] == 0 || !strings.Contains(r.Violations[0], "a process ended by itself") {
		t.Errorf("violations %v, error %v", r.Violations, err)
	}

	if _, err := Run(t.Context(), ricartagrawala.Algorithm, brief(), func() *exec.Cmd { return exec.Command("false") }); err == nil {
		t.Error("a program that ends at once runs")
	}
	if _, err := Run(t.Context(), ricartagrawala.Algorithm, brief(), func() *exec.Cmd { return exec.Command("no-such-program") }); err == nil {
		t.Error("a program that does not exist runs")
	}
	if err := Process(ricartagrawala.Algorithm, new(bytes.Buffer), new(bytes.Buffer)); err == nil {
		t.Error("a process that nobody drives runs")
	}
}
