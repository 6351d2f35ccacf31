package main

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/poundlock/poundlock/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// The commands as they are printed: one leads, another one once that is killed, and the one that was killed comes back.
func TestAsPrinted(t *testing.T) {
	commands := exampletest.Commands(t)
	if len(commands) != 4 {
		t.Fatalf("%q", commands)
	}
	var all []*exampletest.Process
	for _, args := range commands[:3] {
		all = append(all, exampletest.Start(t, args))
	}
	const leads = `^(r[123]) leads, with token (\d+)$`
	leader, first := exampletest.Await(t, all, leads)
	for k, p := range all {
		exampletest.Await(t, []*exampletest.Process{p}, `^r`+strconv.Itoa(k+1)+` cleans up, with token \d+$`)
	}
	leader.End(os.Kill)
	all = slices.DeleteFunc(all, func(p *exampletest.Process) bool { return p == leader })
	_, second := exampletest.Await(t, all, leads)
	if before, after := number(t, first[2]), number(t, second[2]); after <= before {
		t.Errorf("token %d after %d", after, before)
	}
	args := commands[3]
	args[0] = first[1]
	exampletest.Await(t, []*exampletest.Process{exampletest.Start(t, args)}, `cleans up`)
}

func number(t *testing.T, text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
