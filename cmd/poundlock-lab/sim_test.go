package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/verify/sim"
)

// The exit status is part of what scripts rely on.
func TestSimExitStatus(t *testing.T) {
	for _, c := range []struct {
		args string
		want int
	}{
		{"ricart-agrawala -n 2 --entries 3", cli.ExitHolds},
		{"sigma --clients 5 --entries 100 --think constant:0ms --delay exponential:1ms --fence piggyback", cli.ExitViolated},
		{"nonesuch", cli.ExitUsage},
		{"sigma --variant nonesuch", cli.ExitUsage},
		{"sigma --clients 0", cli.ExitUsage},
		{"sigma --option nonesuch=1", cli.ExitUsage},
		{"sigma --delay nonesuch", cli.ExitUsage},
		{"sigma --nonesuch", cli.ExitUsage},
		{"sigma --scenario nonesuch", cli.ExitUsage},
		{"ricart-agrawala --amnesia-every 1s", cli.ExitUsage},
		{"ricart-agrawala --trace /nonesuch/trace", cli.ExitUsage},
		{"", cli.ExitUsage},
	} {
		cmd := clitest.Command(strings.Fields("sim " + c.args)...)
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != c.want {
			t.Errorf("sim %s: exit status %d, want %d\n%s%v", c.args, got, c.want, out, err)
		}
	}
}

// Whoever interrupts a run on a network learns nothing of it.
func TestSimInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := simCommand()
	c.SetArgs(strings.Fields("ricart-agrawala -n 2 --entries 1 --on network"))
	c.SilenceErrors, c.SilenceUsage = true, true
	var status *cli.Status
	if err := c.ExecuteContext(ctx); !errors.As(err, &status) || status.Code != cli.ExitUndecided {
		t.Errorf("error %v, want status %d", err, cli.ExitUndecided)
	}
}

// The JSON object is a sim.Result, whatever was asked for, and nothing else is
// on standard output.
func TestSimJSON(t *testing.T) {
	out, err := clitest.Command("sim", "sigma", "--clients", "2", "--entries", "5", "--json", "--digest").Output()
	if err != nil {
		t.Fatal(err)
	}
	var r sim.Result
	d := json.NewDecoder(strings.NewReader(string(out)))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || d.More() {
		t.Fatalf("%v: %s", err, out)
	}
	if r.Algorithm != "sigma" || r.N != 4 || r.Clients != 2 || r.Entries != 10 || len(r.LogSHA256) != 64 || r.Violations == nil {
		t.Errorf("%+v", r)
	}
}
