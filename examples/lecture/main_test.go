package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/poundlock/poundlock/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// The commands as they are printed: all enter, and send as many messages as the paper says.
func TestAsPrinted(t *testing.T) {
	commands := exampletest.Commands(t)
	if len(commands) != 3 {
		t.Fatalf("%q", commands)
	}
	var all []*exampletest.Process
	for _, args := range commands {
		all = append(all, exampletest.Start(t, args))
	}
	for k, p := range all {
		exampletest.Await(t, []*exampletest.Process{p}, fmt.Sprintf(`^p%d is inside, for the 5\. time$`, k+1))
		exampletest.Await(t, []*exampletest.Process{p}, "is done")
	}
	sent := 0
	for _, p := range all {
		p.End(os.Interrupt)
		for _, line := range p.Lines() {
			var who, what string
			var k int
			if n, _ := fmt.Sscanf(line, "%s sent %d %s", &who, &k, &what); n == 3 {
				sent += k
			}
		}
	}
	if want := 3 * 5 * 2 * (3 - 1); sent != want {
		t.Errorf("%d messages, want %d", sent, want)
	}
}
