package main

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/poundlock/poundlock/internal/cli/clitest"
	"github.com/poundlock/poundlock/verify/check"
	"github.com/poundlock/poundlock/verify/history"
	"github.com/poundlock/poundlock/verify/sim"
)

// TestMain makes this binary poundlock-lab.
func TestMain(m *testing.M) { clitest.Main(m, program().Run, "poundlock-lab") }

func TestScripts(t *testing.T) {
	figures, err := filepath.Abs("../../docs/figures") // the committed results of the laboratory
	if err != nil {
		t.Fatal(err)
	}
	clitest.Scripts(t, func(env *testscript.Env) error {
		env.Setenv("FIGURES", figures)
		return nil
	})
}

func TestHelp(t *testing.T)          { clitest.Help(t, program(), 10) }
func TestHelpStatuses(t *testing.T)  { clitest.Statuses(t, program(), "../../docs/cli.md", 3) }
func TestDocCommands(t *testing.T)   { clitest.Calls(t, program, 70) }
func TestReadmeConsole(t *testing.T) { clitest.Consoles(t, "../../README.md", "poundlock-lab", 2) }

func TestDocs(t *testing.T) {
	const driving = "Driving an algorithm"
	clitest.Described(t, "poundlock-lab", []clitest.Description{
		{Command: program().Root(io.Discard)},
		{Command: algorithmsCommand()},
		{Command: checkCommand(), Shared: driving, JSON: check.Verdict{}},
		{Command: judgeCommand(), JSON: history.Report{}},
		{Command: huntCommand(), Shared: driving, JSON: huntResult{}},
		{Command: replayCommand(), Shared: driving + ",poundlock-lab check", JSON: replay{}},
		{Command: simCommand(), Shared: driving, JSON: sim.Result{}},
	}...)
}
