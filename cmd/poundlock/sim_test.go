package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/verify/sim"
)

// The exit status is part of what scripts rely on.
func TestSimExitStatus(t *testing.T) {
	for _, c := range []struct {
		args string
		want int
	}{
		{"ricart-agrawala -n 2 --entries 3", exitHolds},
		{"sigma --clients 5 --entries 100 --think constant:0ms --delay exponential:1ms --fence piggyback", exitViolated},
		{"nonesuch", exitUsage},
		{"sigma --variant nonesuch", exitUsage},
		{"sigma --clients 0", exitUsage},
		{"sigma --option nonesuch=1", exitUsage},
		{"sigma --delay nonesuch", exitUsage},
		{"sigma --nonesuch", exitUsage},
		{"sigma --scenario nonesuch", exitUsage},
		{"ricart-agrawala --amnesia-every 1s", exitUsage},
		{"ricart-agrawala --trace /nonesuch/trace", exitUsage},
		{"", exitUsage},
	} {
		cmd := program("sim " + c.args)
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != c.want {
			t.Errorf("sim %s: exit status %d, want %d\n%s%v", c.args, got, c.want, out, err)
		}
	}
}

// The JSON object is a sim.Result, whatever was asked for, and nothing else is
// on standard output.
func TestSimJSON(t *testing.T) {
	out, err := program("sim sigma --clients 2 --entries 5 --json --digest").Output()
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

// program is poundlock with the words of line as its arguments.
func program(line string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], strings.Fields(line)...)
	cmd.Env = append(os.Environ(), runAsProgram+"=1")
	return cmd
}
