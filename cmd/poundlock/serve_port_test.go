package main

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/cli"
)

// A port that is in use is an error with a hint, whichever it is of.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	for _, flag := range []string{"--listen", "--admin", "--api"} {
		_, errs, err := output(t, "serve", "--name", "s1", "--listen", "127.0.0.1:0", flag, taken,
			"--servers", "s1=127.0.0.1:1,s2=127.0.0.1:2,s3=127.0.0.1:3,s4=127.0.0.1:4")
		exit, ok := err.(*exec.ExitError)
		if !ok || exit.ExitCode() != cli.ExitError || !strings.Contains(errs, "address already in use\nhint: another process listens there") {
			t.Errorf("%s: %v: %s", flag, err, errs)
		}
	}
}
