package main

import (
	"strings"
	"testing"

	"github.com/poundlock/poundlock/internal/cli"
	"github.com/poundlock/poundlock/internal/cli/clitest"
)

// TestNearest: a misspelt name has a suggestion, what is nothing like any name has none.
func TestNearest(t *testing.T) {
	names := cli.FlagNames(lockCommand())
	for typed, want := range map[string]string{
		"tri": "try", "timeout": "wait", "ttl": "lease", "semaphor": "semaphore", "servres": "servers", "tls-crt": "tls-cert",
		"xyz": "", "no": "no-amnesia", "": "",
	} {
		found := strings.Join(cli.Nearest(typed, names), " ")
		if found != want {
			t.Errorf("%q: %q, want %q", typed, found, want)
		}
	}
}

// What TestDocCommands looks for is noticed.
func TestWrongCall(t *testing.T) {
	for call, want := range map[string]string{
		"lock a -- ./x --nonsense": "",
		"lock --tri a -- true":     "lock has no --tri",
		"status -x":                "status has no -x",
		"status [--limit N] ..":    "",
		"sim NAME":                 "a hidden command",
	} {
		if got := clitest.WrongCall(program(), call); got != want {
			t.Errorf("%s: %q, want %q", call, got, want)
		}
	}
}
